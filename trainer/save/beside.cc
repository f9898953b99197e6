// The copy, the write, the commit; and what becomes of them when the group breaks.
#include "trainer/save/beside.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace keel {
namespace {

// A save beside training is spread over so much of the time that passed since the one before,
// within a limit: all at once it would cost one step what it can cost many a little of.
constexpr int kSpreadShare = 2;
constexpr Duration kSpreadMax = std::chrono::seconds(10);

SaveState Voted(ShareState state) {
  switch (state) {
    case ShareState::kNone: return SaveState::kIdle;
    case ShareState::kWriting: return SaveState::kWriting;
    case ShareState::kWritten:
    case ShareState::kPromised: return SaveState::kDurable;
    case ShareState::kFailed: return SaveState::kFailed;
  }
  return SaveState::kFailed;
}

}  // namespace

void SaveBeside::EndEpoch() {
  AwaitCopy();
  // The first worker may have died while it committed: a second save is the smaller evil.
  if (std::exchange(commit_unsettled_, false)) wanted_ = true;
  if (!share_.under_way()) return;
  GiveUp("the epoch ended", ShareEvent::kLose);
  wanted_ = true;
}

void SaveBeside::AwaitCopy() {
  const Status copied = tools_.writer.AwaitCopy();
  if (!copied.ok()) Fail(copied.error());
}

SaveVote SaveBeside::Vote() {
  Committer& committer = tools_.committer;
  committer.Collect();
  if (share_.state() == ShareState::kWriting && tools_.writer.done()) TakeOutcome();
  if (committer.under_way() || share_.state() == ShareState::kWriting || tools_.writer.left()) {
    tools_.TellIfLate(
        share_.step(),
        "training goes on, but no other save begins before it ends; does the disk answer?");
  }
  share_.On(ShareEvent::kTell);
  const Duration every = tools_.config.every_time;
  const bool due = tools_.place.rank == 0 && every > Duration(0) &&
                   tools_.clock.Monotonic() - last_begin_ >= every;
  // Nobody begins another one as long as somebody is still at the one before.
  const bool busy = committer.under_way() || !tools_.writer.TakeLeft();
  return {busy ? SaveState::kCommitting : Voted(share_.state()),
          tools_.config.saves() && (wanted_ || due)};
}

void SaveBeside::Act(const SaveDecision& decision) {
  if (!tools_.config.saves()) return;
  if (decision.owed) wanted_ = true;
  const bool commits = tools_.place.rank == 0;
  commit_unsettled_ = decision.unsettled && !commits &&
                      (commit_unsettled_ || decision.action == SaveAction::kCommit);
  switch (decision.action) {
    case SaveAction::kNothing: return;
    case SaveAction::kBegin: {
      if (commits) {
        LogInfo("save-begins", {{"step", tools_.state.step()}, {"why", decision.reason}});
      }
      const Status begun = Begin();
      if (!begun.ok()) Fail(begun.error());
      return;
    }
    case SaveAction::kCommit:
      if (commits) {
        tools_.committer.Begin(share_.step(), share_.TakeToCommit());
      } else {
        share_.On(ShareEvent::kCommit);
      }
      return;
    case SaveAction::kGiveUp: return GiveUp(decision.reason, ShareEvent::kDrop);
  }
}

Status SaveBeside::Begin() {
  wanted_ = false;
  const TimePoint before = std::exchange(last_begin_, tools_.clock.Monotonic());
  const Duration spread = std::min((last_begin_ - before) / kSpreadShare, kSpreadMax);
  tools_.watch.OnBegin(last_begin_, spread, tools_.ExpectedSave(tools_.place.world));
  share_.Begin(tools_.state.step());
  // Training waits for nobody.
  if (tools_.place.rank == 0) KEEL_TRY(tools_.directory.Hold(Duration(0)));
  KEEL_TRY_ASSIGN(SavePlan plan, tools_.PlanShare("aside"));
  KEEL_TRY_ASSIGN(CpuBytes share, tools_.ShareOf(plan, /*alias_buffers=*/false));
  return tools_.writer.StartAside(tools_.layout, std::move(plan), std::move(share), spread);
}

void SaveBeside::TakeOutcome() {
  auto outcome = tools_.writer.Take();
  const Status status = outcome.ok() ? std::move(outcome->status) : Status(outcome.error());
  if (!status.ok()) return Fail(status.error());
  const ShardSummary& shard = outcome->shard;
  tools_.speed.OnWritten(shard.content_bytes, outcome->took - shard.rested, /*awaited=*/false);
  share_.Wrote(std::move(outcome->save));
}

void SaveBeside::Fail(const Error& error) {
  share_.On(ShareEvent::kFail);
  LogError("save-failed", {{"step", share_.step()}, {"rank", tools_.place.rank},
                           {"reason", error.message}});
}

void SaveBeside::GiveUp(const std::string& why, ShareEvent how) {
  AwaitCopy();
  tools_.writer.Leave();
  if (tools_.place.rank == 0 || share_.state() == ShareState::kFailed) {
    LogWarn("save-given-up", {{"step", share_.step()}, {"why", why}});
  }
  share_.On(how);
}

// --- Where training stops ---

Status SaveBeside::FinishShare(const DiskWaiting& waiting) {
  AwaitCopy();
  if (share_.state() == ShareState::kWriting) {
    tools_.writer.Hurry();
    KEEL_TRY(tools_.AwaitWriter(waiting, share_.step()));
    TakeOutcome();
  }
  if (Voted(share_.state()) != SaveState::kDurable) {
    return Error{Code::kIo, "the share of step " + std::to_string(share_.step()) +
                                " could not be written"};
  }
  share_.On(ShareEvent::kTell);
  return Ok();
}

Status SaveBeside::CommitShares(const DiskWaiting& waiting) {
  return tools_.CommitNow(waiting, share_.step(), share_.TakeToCommit());
}

void SaveBeside::EndShare(const Status& committed) {
  if (!committed.ok()) return GiveUp(committed.error().message, ShareEvent::kDrop);
  if (share_.under_way()) share_.On(ShareEvent::kCommit);   // by rank 0
}

Status SaveBeside::EndUnderWay(const DiskWaiting& waiting) {
  AwaitCopy();
  Committer& committer = tools_.committer;
  if (committer.under_way()) {
    KEEL_TRY(tools_.AwaitDisk(waiting, committer.step(),
                              [&](Duration limit) { return committer.AwaitDone(limit); }));
  }
  committer.Collect();
  // The vote that stops has shown to all that nobody commits.
  if (share_.under_way()) GiveUp("the save of the last step takes its place", ShareEvent::kDrop);
  return Ok();
}

}  // namespace keel
