// Every member writes its share, all tell each other how that went, and rank 0 commits.
#include "trainer/loop/stop_save.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/log.h"
#include "base/text.h"
#include "trainer/exchange/gather.h"

namespace keel {
namespace {

// How often the others hear that rank 0 still waits: nobody waits for one answer for minutes.
constexpr Duration kMirrorSlice = std::chrono::seconds(1);
// How often a worker looks whether it was told to stop, too.
constexpr Duration kStopLook = std::chrono::milliseconds(10);

// A failure to save, with a code that cannot be taken for a break of the group.
Error NotSaved(uint64_t step, const std::string& why) {
  return {Code::kIo, "step " + std::to_string(step) + " could not be saved: " + why};
}

// Joins the errors of all members that failed: one may have failed because another one removed what
// both wrote to.
std::string FaultsIn(EpochGroup& group, const std::vector<std::string>& said) {
  constexpr size_t kNamedMax = 4;
  std::vector<std::string> faults;
  for (size_t rank = 0; rank < said.size(); ++rank) {
    if (said[rank].empty()) continue;
    faults.push_back(group.NameOf(static_cast<int>(rank)) + ": " + said[rank]);
  }
  if (faults.size() > kNamedMax) {
    const std::string more = "and " + std::to_string(faults.size() - kNamedMax) + " more";
    faults.resize(kNamedMax);
    faults.push_back(more);
  }
  return JoinList(faults, "; ");
}

// Rank 0 looks, and tells all.
Result<bool> IsCommittedForAll(const EpochParts& parts) {
  bool committed = false;
  if (parts.group.rank() == 0) {
    KEEL_TRY_ASSIGN(committed, parts.saver().at_once().IsCommitted(parts.Waiting()));
  }
  KEEL_TRY_ASSIGN(const std::vector<bool> said, GatherFlags(parts.group, committed));
  return bool(said[0]);
}

// Empty, or why the state could not be saved. All members get the same answer.
Result<std::string> WriteAndCommit(const EpochParts& parts) {
  const Status written = parts.saver().at_once().WriteShare(parts.Waiting());
  KEEL_TRY_ASSIGN(std::vector<std::string> said,
                  GatherTexts(parts.group, written.ok() ? "" : written.error().message));
  const std::string why = FaultsIn(parts.group, said);
  if (!why.empty()) {
    parts.saver().at_once().DropShare();
    return why;
  }
  std::string mine;
  if (parts.group.rank() == 0) {
    const Status committed = parts.saver().at_once().CommitShares(parts.Waiting());
    if (!committed.ok()) mine = committed.error().message;
  }
  KEEL_TRY_ASSIGN(said, GatherTexts(parts.group, mine));
  return said[0];
}

std::vector<StopVote> StopVotesOf(const std::vector<VoteRecord>& records) {
  std::vector<StopVote> votes;
  for (const VoteRecord& record : records) {
    StopVote vote{.state = record.saving};
    if (record.deadline_ms) vote.left = std::chrono::milliseconds(*record.deadline_ms);
    if (record.save_ns) vote.needs = Duration(*record.save_ns);
    votes.push_back(vote);
  }
  return votes;
}

void TellItDoesNotFit(const EpochParts& parts, const StopDecision& decision) {
  if (parts.group.rank() != 0) return;
  const bool finishes = decision.what == StopSave::kFinish;
  LogError("save-does-not-fit",
           {{"step", parts.state.step()},
            {"needs", DurationText(decision.needs)},
            {"left", DurationText(*decision.left)},
            {"instead", finishes ? "finishing the save under way" : "leaving at once"}});
}

// Also whoever catches up, and says so later than it was told.
bool AllLeave(const std::vector<VoteRecord>& records) {
  return std::all_of(records.begin(), records.end(), [](const VoteRecord& record) {
    return record.stop || record.leaving;
  });
}

// A stop of the job may have come to one worker before the vote, and to another one behind it. It
// counts where there is a mirror, which nobody waits for if some stay.
Result<bool> AllLeaveByNow(const EpochParts& parts, const std::vector<VoteRecord>& records,
                           Duration spread) {
  if (AllLeave(records) || !parts.saver().mirrors()) return AllLeave(records);
  const TimePoint end = RealClock().Monotonic() + spread;
  bool leaves = false;
  for (;;) {
    const EpochCallbacks::Wishes wishes = parts.peer.wishes();
    if (wishes.save) parts.saver().beside().WantSave();   // it is told only once
    leaves = wishes.stop;
    if (leaves || RealClock().Monotonic() >= end) break;
    RealClock().SleepFor(kStopLook);
  }
  KEEL_TRY_ASSIGN(const std::vector<bool> said, GatherFlags(parts.group, leaves));
  return std::all_of(said.begin(), said.end(), [](bool one) { return one; });
}

void TellUnsaved(const EpochParts& parts, bool all_leave) {
  parts.saver().TellUnsaved(all_leave ? "these steps are lost"
                                      : "the workers that stay go on with these steps");
}

// Fails with an error of the group, or if the save could not be committed, which all members see.
Status FinishUnderWay(const EpochParts& parts) {
  parts.At(Phase::kSaving);
  const Status written = parts.saver().beside().FinishShare(parts.Waiting());
  KEEL_TRY_ASSIGN(std::vector<std::string> said,
                  GatherTexts(parts.group, written.ok() ? "" : written.error().message));
  std::string why = FaultsIn(parts.group, said);
  if (why.empty()) {
    const Status committed =
        parts.group.rank() == 0 ? parts.saver().beside().CommitShares(parts.Waiting()) : Ok();
    KEEL_TRY_ASSIGN(said, GatherTexts(parts.group, committed.ok() ? "" :
                                                                    committed.error().message));
    why = said[0];
  }
  const Status status = why.empty() ? Ok() : Status(Error{Code::kIo, why});
  parts.saver().beside().EndShare(status);
  return status;
}

}  // namespace

Result<std::string> AwaitMirror(const EpochParts& parts, bool all,
                                const std::function<std::optional<TimePoint>()>& deadline) {
  if (!parts.saver().mirrors()) return std::string();
  const bool waits = parts.group.rank() == 0;
  std::optional<MirrorWait> wait;
  if (waits) wait.emplace(parts.saver().WaitForMirror(all));
  for (;;) {
    constexpr const char* kNotYet = "not yet";
    std::string mine;
    parts.Ticks()();
    if (waits) {
      const Result<bool> is_there = wait->Await(kMirrorSlice, deadline());
      mine = is_there.ok() ? (*is_there ? "" : kNotYet) : is_there.error().message;
    }
    KEEL_TRY_ASSIGN(const std::vector<std::string> said, GatherTexts(parts.group, mine));
    if (said[0] != kNotYet) return said[0];
  }
}

Status SaveTogether(const EpochParts& parts, Phase phase) {
  parts.At(phase);
  KEEL_TRY(parts.saver().beside().EndUnderWay(parts.Waiting()));
  KEEL_TRY_ASSIGN(bool committed, IsCommittedForAll(parts));
  std::string why;
  if (!committed) {
    KEEL_TRY_ASSIGN(why, WriteAndCommit(parts));
    // A worker that left alone at this very step may have saved it first.
    committed = why.empty();
    if (!committed) {
      KEEL_TRY_ASSIGN(committed, IsCommittedForAll(parts));
    }
  }
  return committed ? Ok() : Status(NotSaved(parts.state.step(), why));
}

StopDecision DecideStopBy(const std::vector<VoteRecord>& records) {
  return DecideStopSave(StopVotesOf(records));
}

Result<bool> SaveToStop(const EpochParts& parts, const std::vector<VoteRecord>& records) {
  const StopDecision decision = DecideStopBy(records);
  if (decision.what != StopSave::kSave) TellItDoesNotFit(parts, decision);
  Status saved;
  std::optional<TimePoint> deadline;
  if (decision.left) {
    deadline = RealClock().Monotonic() + *decision.left;
    parts.saver().Hurry();
  }
  if (decision.what == StopSave::kSave) saved = SaveTogether(parts);
  const bool is_here = decision.what == StopSave::kSave && saved.ok();
  // Where some stay, they train on, and copy it meanwhile.
  if (is_here) {
    const Duration spread = std::min(kStopSpread, decision.left.value_or(3 * kStopSpread) / 3);
    KEEL_TRY_ASSIGN(const bool all_leave, AllLeaveByNow(parts, records, spread));
    std::string why;
    if (all_leave) {
      KEEL_TRY_ASSIGN(why, AwaitMirror(parts, /*all=*/false, [&] { return deadline; }));
    }
    if (!why.empty()) saved = NotSaved(parts.state.step(), why);
  }
  if (decision.what == StopSave::kFinish) saved = FinishUnderWay(parts);
  if (!saved.ok() && IsBreak(saved.error())) return saved.error();
  const bool is_saved = decision.what == StopSave::kSave && saved.ok();
  if (parts.group.rank() != 0) return is_saved;
  if (!saved.ok()) LogError("save-failed", {{"reason", saved.error().message}});
  if (!is_saved && !is_here) TellUnsaved(parts, AllLeave(records));
  return is_saved;
}

}  // namespace keel
