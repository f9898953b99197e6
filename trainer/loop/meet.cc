// Reports come first. Then all members know who holds the state, and what each of them has to do.
#include "trainer/loop/meet.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "base/object_files.h"
#include "ckpt/catalog.h"
#include "ckpt/frame.h"
#include "trainer/exchange/gather.h"
#include "trainer/exchange/transfer.h"
#include "trainer/loop/held_bits.h"
#include "trainer/numerics/fingerprint.h"
#include "trainer/save/resume.h"
#include "trainer/state/reform.h"

namespace keel {
namespace {

// What the member that looks for a checkpoint has found.
struct Beginning {
  enum class Kind : uint8_t { kNothing, kResumed, kRefused };
  Kind kind = Kind::kNothing;
  std::string why;   // of kRefused; of kResumed the steps that could not be read
};

std::string NumbersText(const std::vector<uint64_t>& numbers) {
  std::string text;
  for (const uint64_t number : numbers) text += std::to_string(number) + " ";
  return text;
}

std::vector<uint64_t> NumbersIn(const std::string& text) {
  std::vector<uint64_t> numbers;
  std::istringstream words(text);
  for (uint64_t number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

class Meeting {
 public:
  Meeting(const EpochParts& parts, const ApplyPending& apply)
      : parts_(parts), state_(parts.state), group_(parts.group), apply_(apply) {}

  Status Run() {
    KEEL_TRY_ASSIGN(std::vector<MemberReport> reports, Reports());
    KEEL_TRY(CheckFit(reports));
    if (!refused_.empty()) return Ok();
    const bool begins = NobodyHolds(reports);
    if (parts_.keeping != nullptr) {
      KEEL_TRY(BeginKeeping(reports));
      if (refused_.empty()) KEEL_TRY(ResumeIfNobodyHolds(&reports));
      if (!refused_.empty()) return Ok();
    }
    // From here on this worker needs no checkpoint: others have the state, or one has restored it.
    Keeping* const keeping = parts_.keeping;
    if (keeping != nullptr && keeping->ahead != nullptr) keeping->ahead->Stop();
    KEEL_TRY(LeaveBeginningToOne(reports));
    KEEL_TRY_ASSIGN(const ReformPlan plan, PlanReform(reports));
    doubts_ = plan.doubts;
    recheck_every_ = plan.recheck_every;
    unproven_ = !begins && plan.unproven;
    alike_ = plan.alike;
    for (const MemberReport& report : reports) {
      costs_.lane_ns.push_back(report.lane_ns);
      costs_.link_ns = std::max(costs_.link_ns, report.link_ns);
    }
    // Every report is here, so the pending step is decided, and nobody can ask for it again.
    const MemberReport& source = reports[static_cast<size_t>(plan.source)];
    const Part part = plan.parts[static_cast<size_t>(group_.rank())];
    if (group_.rank() == plan.source) {
      LogInfo("state-agreed", {{"reason", plan.reason}, {"workers", group_.size()}});
    }
    if (part == Part::kApplies) {
      KEEL_TRY(apply_(source.last_losses));
    } else {
      state_.Drop();
    }
    KEEL_TRY(MoveState(plan, source, part));
    if (plan.catches_up()) KEEL_TRY(BeginCatchingUp(plan, source, part));
    if (part == Part::kReady) KEEL_TRY(state_.TakeOwn());
    if (part == Part::kReceives || part == Part::kCatchesUp) state_.SetUnproven(!begins);
    state_.SetInexactSince(plan.inexact_since);
    return CompareStates(plan);
  }

  Met met() const {
    return {refused_, pieces_, catching_up_, doubts_, recheck_every_, unproven_, alike_, costs_};
  }

 private:
  // The coordinator refuses misfits, but what it knows is a moment old, so all members check before
  // the first step. A misfit ends, which breaks the group for the others.
  Status CheckFit(const std::vector<MemberReport>& reports) {
    const auto why_not = [&](size_t rank) {
      const std::string apart = WhyApart(reports, rank);
      return apart.empty() && !parts_.peer.inexact_allowed ? WhyUnfit(reports, rank) : apart;
    };
    refused_ = why_not(static_cast<size_t>(group_.rank()));
    if (!refused_.empty()) return Ok();
    for (size_t rank = 0; rank < reports.size(); ++rank) {
      const std::string why = why_not(rank);
      if (!why.empty()) return Error{Code::kPeerLost, why};
    }
    return Ok();
  }

  // --- Beginning from a checkpoint ---

  Status BeginKeeping(const std::vector<MemberReport>& reports) {
    const MemberReport& first = reports[0];
    SaveTerms terms{.every_steps = static_cast<uint64_t>(first.save_every)};
    if (parts_.saver().saves()) {
      KEEL_TRY_ASSIGN(terms.codec, ParseCodec(first.codec));
    }
    parts_.saver().BeginEpoch({.epoch = parts_.peer.epoch,
                               .rank = group_.rank(),
                               .world = group_.size(),
                               .prefix = parts_.prefix,
                               .fingerprint = first.fingerprint,
                               .config = first.config,
                               .terms = terms});
    KEEL_TRY(TellWhoMirrors());
    if (NobodyHolds(reports) || !parts_.saver().saves()) return Ok();
    KEEL_TRY(CheckDirectory(first.directory));
    if (group_.rank() != 0) return Ok();
    // A failure does not end a job that trains: it goes on, and tries again with each save.
    const Status held = parts_.saver().directory().Hold();
    if (!held.ok()) LogError("cannot-save", {{"reason", held.error().message}});
    return Ok();
  }

  // Whoever mirrors next takes the place of this holder at once, should it live on elsewhere.
  Status TellWhoMirrors() {
    if (!parts_.saver().mirrors()) return Ok();
    Mirror& mirror = parts_.saver().mirror();
    KEEL_TRY_ASSIGN(const auto ids, GatherTexts(group_, mirror.id()));
    mirror.Know(ids[0]);
    return Ok();
  }

  // Refuses a worker whose --checkpoint-dir is another directory, since every save would fail; its
  // end breaks the group for the others. A missing mark proves nothing alone, because rank 0's
  // directory may have been removed: so all look again after rank 0 has put it back.
  Status CheckDirectory(std::string id) {
    while (!id.empty()) {
      const Status seen = parts_.saver().directory().Check(id);
      KEEL_TRY_ASSIGN(const std::vector<bool> sees_it, GatherFlags(group_, seen.ok()));
      if (std::find(sees_it.begin(), sees_it.end(), false) == sees_it.end()) break;
      // If rank 0 cannot put it back, nobody can tell; its next save says why.
      if (group_.rank() == 0) (void)parts_.saver().directory().HoldAnewWhereLost();
      KEEL_TRY_ASSIGN(const auto ids, GatherTexts(group_, parts_.saver().directory().id()));
      if (ids[0] == id) {
        if (seen.ok()) break;
        KEEL_TRY(CheckRefused(parts_.saver().config().root, seen.error()));
        refused_ = Elsewhere(seen.error());
        break;
      }
      id = ids[0];
    }
    return Ok();
  }

  std::string Elsewhere(const Error& error) const {
    return group_.NameOf(group_.rank()) + ": the --checkpoint-dir " + parts_.saver().config().root +
           " of this host is not the directory that " + group_.NameOf(0) +
           " saves in, since the mark that it has put there is missing (" + error.message +
           "); give all hosts a directory that they share";
  }

  // The first member that still has what its program built; rank 0 if there is none.
  static int WhoResumes(const std::vector<MemberReport>& reports) {
    for (size_t rank = 0; rank < reports.size(); ++rank) {
      if (reports[rank].step == MemberReport::kFresh) return static_cast<int>(rank);
    }
    return 0;
  }

  // Where all were still receiving the state, and nothing is saved, one worker ends, and another in
  // its place begins anew, whose state the others wait for. Each one that ends costs a restart.
  Status LeaveBeginningToOne(const std::vector<MemberReport>& reports) const {
    const int beginner = WhoResumes(reports);
    const bool all_lack_it =
        std::all_of(reports.begin(), reports.end(), [](const MemberReport& report) {
          return report.step == MemberReport::kSpoiled;
        });
    if (!all_lack_it || group_.rank() == beginner) return Ok();
    return Error{Code::kPeerLost, "no worker that is left has the whole state, so " +
                                      group_.NameOf(beginner) + " ends, and is to begin anew"};
  }

  // One member looks for a checkpoint and restores it; the others then receive the state from it.
  Status ResumeIfNobodyHolds(std::vector<MemberReport>* reports) {
    if (!NobodyHolds(*reports)) return Ok();
    const auto resumer = static_cast<size_t>(WhoResumes(*reports));
    KEEL_TRY(MeetInDirectory());
    if (!refused_.empty()) return Ok();
    Beginning mine;
    if (group_.rank() == static_cast<int>(resumer)) {
      KEEL_TRY_ASSIGN(mine, Begin((*reports)[resumer].step == MemberReport::kFresh));
    }
    KEEL_TRY_ASSIGN(const std::vector<Beginning> all, GatherBeginnings(mine));
    const Beginning& found = all[resumer];
    if (found.kind == Beginning::Kind::kRefused) refused_ = found.why;
    if (found.kind == Beginning::Kind::kResumed) {
      // Any of them may come to save such a step.
      if (parts_.keeping != nullptr) parts_.saver().at_once().NoteUnread(NumbersIn(found.why));
      KEEL_TRY_ASSIGN(*reports, Reports());
    }
    return Ok();
  }

  // Rank 0 takes hold of the directory, and the others check that theirs is the same.
  Status MeetInDirectory() {
    if (!parts_.saver().saves()) return Ok();
    // Another run of this name may be there, whom the lease of this one does not fence.
    const Status held = group_.rank() == 0
                            ? parts_.saver().directory().Hold(JobDirectory::kHoldLimit,
                                                              OlderLocks::kWaitFor)
                            : Ok();
    if (!held.ok()) KEEL_TRY(CheckRefused(parts_.saver().config().root, held.error()));
    std::string why = held.ok() ? "" : held.error().message;
    if (why.empty() && group_.rank() == 0) why = WhyNoMirror();
    KEEL_TRY_ASSIGN(const std::vector<std::string> whys, GatherTexts(group_, why));
    refused_ = whys[0];
    if (!refused_.empty()) return Ok();
    KEEL_TRY(TellWhoMirrors());
    KEEL_TRY_ASSIGN(const auto ids, GatherTexts(group_, parts_.saver().directory().id()));
    return CheckDirectory(ids[0]);
  }

  // Why nothing may be copied to the mirror; empty: that may be tried, now or later.
  std::string WhyNoMirror() {
    const Status held = parts_.saver().mirror().Hold(parts_.peer.epoch, parts_.Ticks());
    if (held.ok()) return "";
    // A job that has begun goes on from its directory, whatever has become of the mirror.
    const bool has_begun = !parts_.keeping->resume.begun_job.empty();
    const bool is_refused =
        held.error().code == Code::kExists || held.error().code == Code::kInvalid;
    if (is_refused && !has_begun) {
      const std::string& why = held.error().message;
      return why.starts_with(kCheckpointMirrorOption)
                 ? why
                 : std::string(kCheckpointMirrorOption) + ": " + why;
    }
    LogWarn("mirror-failed", {{"to", parts_.saver().mirror().to()},
                              {"reason", held.error().message},
                              {"note", "training goes on, and this is tried again"}});
    return "";
  }

  // A store or a network file system that cannot be reached now may answer later. So that is no
  // refusal, after which nobody would try again, and no break of the group either: this worker
  // fails, and is started again.
  Status CheckRefused(const std::string& place, const Error& error) const {
    const bool may_answer = MayAnswerLater(error, IsInBucket(parts_.keeping->files, place));
    return may_answer ? Status(Error{Code::kIo, error.message, true}) : Ok();
  }

  // Weights complete only a state that the program has just built, not one that is half received.
  Result<Beginning> Begin(bool fresh) {
    ResumeConfig config = parts_.keeping->resume;
    if (!fresh) config.init_from.clear();
    parts_.Stage("resuming");
    const auto outcome = Resume(state_, parts_.keeping->files, config, parts_.Ticks(),
                                parts_.keeping->ahead);
    if (!outcome.ok()) {
      for (const std::string& place :
           {config.root, config.mirror, config.resume_from, config.init_from}) {
        KEEL_TRY(CheckRefused(place, outcome.error()));
      }
      return Beginning{Beginning::Kind::kRefused, outcome.error().message};
    }
    if (outcome->resumed) parts_.keeping->resumed_from = outcome->from;
    if (!outcome->resumed && !outcome->from.empty()) {
      LogInfo("weights-loaded", {{"from", outcome->from}});
    }
    return Beginning{outcome->from.empty() ? Beginning::Kind::kNothing : Beginning::Kind::kResumed,
                     NumbersText(outcome->unread)};
  }

  Result<std::vector<Beginning>> GatherBeginnings(const Beginning& mine) {
    RecordBytes record = RecordOf(mine.why);
    record.insert(record.begin(), static_cast<std::byte>(mine.kind));
    KEEL_TRY_ASSIGN(const std::vector<RecordBytes> records,
                    GatherRecords(group_, record));
    std::vector<Beginning> all;
    for (const RecordBytes& bytes : records) {
      if (bytes.empty() || bytes[0] > static_cast<std::byte>(Beginning::Kind::kRefused)) {
        return Error{Code::kCorrupt, "another worker's message on what it begins with cannot be "
                                     "read"};
      }
      all.push_back({static_cast<Beginning::Kind>(bytes[0]),
                     TextOf(std::span(bytes).subspan(1))});
    }
    return all;
  }

  Result<std::vector<MemberReport>> Reports() {
    parts_.Stage("reports");
    MemberReport report = state_.Report();
    report.fingerprint =
        parts_.keeping != nullptr ? parts_.keeping->resume.fingerprint : parts_.peer.fingerprint;
    report.together = Together();
    report.beginning = BeginningAsked();
    if (parts_.keeping != nullptr && group_.rank() == 0) {
      const CheckpointConfig& config = parts_.saver().config();
      report.config = config.config;
      report.directory = parts_.saver().directory().id();
      report.save_every = static_cast<int64_t>(config.every_steps);
      report.codec = CodecName(config.codec);
    }
    KEEL_TRY_ASSIGN(const std::vector<std::string> texts, GatherTexts(group_, ReportText(report)));
    std::vector<MemberReport> reports;
    for (const std::string& text : texts) {
      KEEL_TRY_ASSIGN(MemberReport one, ParseReport(text));
      reports.push_back(std::move(one));
    }
    return reports;
  }

  std::string Together() const {
    Fingerprint together;
    const bool saves = parts_.saves();
    together.Add("--checkpoint-dir", saves ? "given" : "none");
    together.Add("--checkpoint-mirror", saves && parts_.saver().mirrors() ? "given" : "none");
    const EvaluationPlan& plan = state_.program().evaluation;
    std::string evaluation = "none";
    if (plan.dataset) {
      evaluation = "every_" + std::to_string(plan.every) + "_of_" +
                   std::to_string(plan.dataset->size()) + "_by_" + std::to_string(plan.batch);
    }
    together.Add("evaluation", evaluation);
    const TrainConfig& config = state_.config();
    together.Add("--lane-placement", config.places_lanes ? "auto" : "even");
    together.Add("--on-corruption",
                 config.on_corruption == OnCorruption::kStop ? "stop" : "continue");
    return together.Text();
  }

  std::string BeginningAsked() const {
    Fingerprint beginning;
    const auto given = [](bool is) { return is ? "given" : "none"; };
    const ResumeConfig resume = parts_.keeping != nullptr ? parts_.keeping->resume : ResumeConfig{};
    beginning.Add("--resume-from", given(!resume.resume_from.empty()));
    beginning.Add("--init-from", given(!resume.init_from.empty()));
    return beginning.Text();
  }

  Status MoveState(const ReformPlan& plan, const MemberReport& source, Part part) {
    std::vector<bool> has_it;
    bool any_lacks_it = false;
    for (const Part one : plan.parts) {
      has_it.push_back(one != Part::kReceives);
      any_lacks_it |= one == Part::kReceives;
    }
    if (!any_lacks_it) return Ok();
    parts_.Stage("moving the state");
    if (part == Part::kReceives) state_.BeginReceiving();
    KEEL_TRY(Transfer(group_, state_.registry().FlatAliases(), has_it,
                      [tick = parts_.Ticks()](uint64_t, uint64_t) { tick(); }));
    if (part == Part::kReceives) {
      KEEL_TRY(state_.EndReceiving(source));
      LogInfo("state-complete", {{"step", state_.step()}, {"steps", 0}});
    }
    return Ok();
  }

  // What is small goes now, and the rest during the next steps.
  Status BeginCatchingUp(const ReformPlan& plan, const MemberReport& source, Part part) {
    std::vector<bool> has_it;
    for (const Part one : plan.parts) {
      catching_up_.push_back(one == Part::kCatchesUp);
      has_it.push_back(one != Part::kCatchesUp);
    }
    parts_.Stage("beginning to catch up");
    if (part == Part::kCatchesUp) state_.BeginReceiving();
    const std::vector<at::Tensor>& first = state_.parts()->first;
    if (!first.empty()) KEEL_TRY(Transfer(group_, first, has_it));
    return part == Part::kCatchesUp ? state_.BeginCatchingUp(source) : Ok();
  }

  // Compares all bits of the state, once per epoch; or what is small, and leaves the rest to the
  // next steps.
  Status CompareStates(const ReformPlan& plan) {
    parts_.Stage("comparing states");
    const bool by_pieces = plan.proved && state_.pieces() > 1;
    if (by_pieces) pieces_ = state_.pieces();
    const bool whole = !by_pieces && plan.parts[static_cast<size_t>(group_.rank())] !=
                                         Part::kCatchesUp;
    const Digest own = whole ? state_.registry().StateDigest() : state_.SmallDigest();
    KEEL_TRY_ASSIGN(const std::vector<Digest> all, GatherDigests(group_, own));
    // Steps made by other kernels leave other bits, also once all that are left compute alike.
    const bool may_differ = !plan.alike || (plan.inexact_since >= 0 && !plan.proved);
    KEEL_TRY(JudgeStates(plan, all, by_pieces, may_differ));
    if (whole) TellResumed(own);
    const bool are_same = !may_differ || std::equal(all.begin() + 1, all.end(), all.begin());
    alike_ = alike_ && are_same;
    if (state_.whole()) state_.NoteCompared(alike_);
    return Ok();
  }

  // `all`: digests by rank; of members that catch up, they count only if `by_pieces`.
  Status JudgeStates(const ReformPlan& plan, const std::vector<Digest>& all, bool by_pieces,
                     bool may_differ) {
    HeldBits held;
    // Who received it may have parts of the states of several.
    const bool is_mixture = may_differ && !HoldersAgree(plan, all);
    for (int rank = 0; rank < group_.size(); ++rank) {
      const Part part = plan.parts[static_cast<size_t>(rank)];
      const Digest& digest = all[static_cast<size_t>(rank)];
      const bool is_source = digest == all[static_cast<size_t>(plan.source)];
      if (part == Part::kCatchesUp && !by_pieces) continue;
      if (plan.step == 0 && !is_source) return BuiltApart(rank, plan.source);
      const bool has_made_steps = part == Part::kReady || part == Part::kApplies;
      if (has_made_steps && may_differ && rank != plan.source) continue;
      if (has_made_steps) held.Add(rank, digest);
      if (is_mixture) continue;
      if (part == Part::kReceives || part == Part::kCatchesUp) held.AddReceived(rank, digest);
    }
    Status judged = held.JudgeAndPart(group_, state_.step());
    const bool received = plan.parts[static_cast<size_t>(group_.rank())] == Part::kReceives;
    // Some of it may be of the member that is wrong, so it is to be received anew.
    if (!judged.ok() && received) state_.BeginReceiving();
    return judged;
  }

  static bool HoldersAgree(const ReformPlan& plan, const std::vector<Digest>& all) {
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const bool holds = plan.parts[rank] == Part::kReady || plan.parts[rank] == Part::kApplies;
      if (holds && all[rank] != all[static_cast<size_t>(plan.source)]) return false;
    }
    return true;
  }

  // Nothing was trained that could be lost, and the program is to be mended, so all fail.
  Error BuiltApart(int rank, int source) const {
    return {Code::kCorrupt, "at step 0 the state of " + group_.NameOf(rank) +
                                " differs from that of " + group_.NameOf(source) +
                                ": build the model from the seed alone"};
  }

  // Called once all have the state; only the worker that restored it reports.
  void TellResumed(const Digest& digest) {
    if (parts_.keeping == nullptr || parts_.keeping->resumed_from.empty()) return;
    const std::string from = std::exchange(parts_.keeping->resumed_from, "");
    if (parts_.keeping->on_resumed) parts_.keeping->on_resumed(from, digest);
  }

  const EpochParts& parts_;
  TrainState& state_;
  EpochGroup& group_;
  const ApplyPending& apply_;
  std::string refused_;   // why nobody, or not this member, may begin
  uint64_t pieces_ = 0;   // of the state, left to be compared by the next steps
  std::vector<bool> catching_up_;
  int64_t doubts_ = 0;
  bool unproven_ = false;
  bool alike_ = false;
  int64_t recheck_every_ = 0;
  PlacementCosts costs_;
};

}  // namespace

Result<Met> Meet(const EpochParts& parts, const ApplyPending& apply) {
  Meeting meeting(parts, apply);
  KEEL_TRY(meeting.Run());
  return meeting.met();
}

}  // namespace keel
