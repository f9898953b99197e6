// Build, report, resume, catch up, compare; then step and vote, and save as the votes say.
#include "trainer/loop/epoch_run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "ckpt/frame.h"
#include "store/torch_guard.h"
#include "trainer/exchange/exchange.h"
#include "trainer/exchange/gather.h"
#include "trainer/exchange/transfer.h"
#include "trainer/group/whereabouts.h"
#include "trainer/loop/evaluation.h"
#include "trainer/loop/lane_work.h"
#include "trainer/loop/vote.h"
#include "trainer/numerics/fingerprint.h"
#include "trainer/numerics/profile_range.h"
#include "trainer/state/reform.h"

namespace keel {
namespace {

// Whether the group failed, not what it was used for.
bool IsBreak(const Error& error) {
  return error.code == Code::kCancelled || error.code == Code::kPeerLost ||
         error.code == Code::kTimeout || error.code == Code::kStaleEpoch;
}

RecordBytes BytesOf(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// A failure to save, under a code that is not taken for a break of the group.
Error NotSaved(uint64_t step, const std::string& why) {
  return {Code::kIo, "step " + std::to_string(step) + " could not be saved: " + why};
}

class EpochRun {
 public:
  EpochRun(TrainState& state, const EpochGroup::Spec& spec, EpochGroup& group,
           const EpochPeer& peer, Keeping* keeping)
      : state_(state), prefix_(spec.prefix), group_(group), peer_(peer), keeping_(keeping) {}

  Result<EpochOutcome> Run() {
    KEEL_TRY(OpenExchange());
    KEEL_TRY(Meet());
    if (!refused_.empty()) return EpochOutcome{EpochEnd::kRefused, refused_, group_.rank() == 0};
    KEEL_TRY(EvaluateIfDue());
    while (state_.step() < state_.config().steps) {
      KEEL_TRY_ASSIGN(const std::optional<EpochEnd> end, Step());
      if (end) return Outcome(*end);
      KEEL_TRY(EvaluateIfDue());
    }
    if (keeping_ != nullptr && saver().saves()) {
      const Status saved = SaveTogether();
      if (!saved.ok()) return saved.error();
    }
    // Nobody leaves before everybody is known to have made the last step.
    At(Phase::kVoting);
    VoteRecord record = Record({}, {});
    KEEL_TRY(Vote(group_, record, Lanes()));
    return Outcome(EpochEnd::kFinished);
  }

 private:
  int Lanes() const { return static_cast<int>(state_.config().lanes); }
  Whereabouts& whereabouts() { return group_.whereabouts(); }
  void At(Phase phase) { whereabouts().At(static_cast<int64_t>(state_.step()), phase); }
  void Place(const char* place) { whereabouts().Place(place); }
  // One of those that the members go through as they meet; told at once.
  void Stage(const char* place) {
    Place(place);
    whereabouts().Tick();
  }
  EpochOutcome Outcome(EpochEnd end) const {
    return {end, "", group_.rank() == 0, saved_step_};
  }
  Checkpointer& saver() const { return keeping_->checkpointer; }
  // While the disk is waited for; a break must be heard.
  Checkpointer::Waiting Waiting() {
    return {.tick = Ticks(), .look = [this] { return group_.status(); }};
  }
  // Tells that something long gets on.
  std::function<void()> Ticks() {
    return [this] { whereabouts().Tick(); };
  }

  Status OpenExchange() {
    const TrainConfig& config = state_.config();
    Exchange::Options options{.lanes = Lanes(), .reduce = config.reduce};
    options.bucket_bytes_max = config.bucket_bytes;
    options.first_bucket_bytes_max = std::min(options.first_bucket_bytes_max, config.bucket_bytes);
    // Gradients that nobody waits for any more would be carried into the new exchange.
    if (!state_.pending()) {
      for (at::Tensor parameter : state_.parameters()) parameter.mutable_grad() = at::Tensor();
    }
    KEEL_TRY_ASSIGN(exchange_, Exchange::Open(state_.parameters(), group_, options));
    // Who begins has used none of this memory before, and may wait for a checkpoint or a state.
    if (!state_.whole()) exchange_->WarmUp();
    return Ok();
  }

  // --- Coming to the same state ---

  Status Meet() {
    KEEL_TRY_ASSIGN(std::vector<MemberReport> reports, Reports());
    KEEL_TRY(CheckFit(reports));
    if (!refused_.empty()) return Ok();
    if (keeping_ != nullptr) {
      KEEL_TRY(BeginKeeping(reports));
      if (refused_.empty()) KEEL_TRY(ResumeIfNobodyHolds(&reports));
      if (!refused_.empty()) return Ok();
    }
    // Others have the state, or took it from a checkpoint.
    if (keeping_ != nullptr && keeping_->ahead != nullptr) keeping_->ahead->Stop();
    KEEL_TRY_ASSIGN(const ReformPlan plan, PlanReform(reports));
    // Every report is here, so what is pending is decided: nobody can ask for it again.
    const MemberReport& source = reports[static_cast<size_t>(plan.source)];
    const Part part = plan.parts[static_cast<size_t>(group_.rank())];
    if (group_.rank() == plan.source) {
      LogInfo("state-agreed", {{"reason", plan.reason}, {"workers", group_.size()}});
    }
    if (part == Part::kApplies) {
      KEEL_TRY(Apply(source.last_losses));
    } else {
      state_.Drop();
    }
    KEEL_TRY(MoveState(plan, source, part));
    if (part == Part::kReady) KEEL_TRY(state_.TakeOwn());
    state_.SetInexactSince(plan.inexact_since);
    return CompareStates(plan);
  }

  // The coordinator refuses misfits, but what it knows is a moment old: before the first step all
  // look themselves. A misfit ends, and for the others the group is broken.
  Status CheckFit(const std::vector<MemberReport>& reports) {
    const auto why_not = [&](size_t rank) {
      const std::string apart = WhyApart(reports, rank);
      return apart.empty() && !peer_.inexact_allowed ? WhyUnfit(reports, rank) : apart;
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
    if (saver().saves()) {
      KEEL_TRY_ASSIGN(terms.codec, ParseCodec(first.codec));
    }
    saver().BeginEpoch({.rank = group_.rank(), .world = group_.size(), .prefix = prefix_,
                        .fingerprint = first.fingerprint, .config = first.config,
                        .terms = terms});
    if (NobodyHolds(reports) || !saver().saves()) return Ok();
    KEEL_TRY(CheckDirectory(first.directory));
    if (group_.rank() != 0) return Ok();
    // A job that trains goes on, and tries again with each save.
    const Status held = saver().HoldDirectory();
    if (!held.ok()) LogError("cannot-save", {{"reason", held.error().message}});
    return Ok();
  }

  // Who saves elsewhere would make every save fail: it ends, which breaks the group for the others.
  // That something is missing proves it only if the first rank still has it there, and with us,
  // when all have looked. Where it has not, it puts something there anew.
  Status CheckDirectory(std::string id) {
    while (!id.empty()) {
      const Status seen = saver().CheckDirectory(id);
      KEEL_TRY_ASSIGN(const auto missing, GatherTexts(seen.ok() ? "" : kMissing));
      if (std::count(missing.begin(), missing.end(), kMissing) == 0) break;
      // Where it cannot, nobody can tell; its next save says why.
      if (group_.rank() == 0) (void)saver().HoldAnewWhereLost();
      KEEL_TRY_ASSIGN(const auto ids, GatherTexts(saver().directory_id()));
      if (ids[0] == id) {
        if (!seen.ok()) refused_ = Elsewhere(seen.error());
        break;
      }
      id = ids[0];
    }
    return Ok();
  }

  std::string Elsewhere(const Error& error) const {
    return group_.NameOf(group_.rank()) + ": the --checkpoint-dir " + saver().config().root +
           " of this host is not the directory that " + group_.NameOf(0) +
           " saves in, for what that one has put there is missing (" + error.message +
           "); give all hosts a directory that they share";
  }

  // The first whose memory is what its program built; rank 0 where that is nobody's.
  static int WhoResumes(const std::vector<MemberReport>& reports) {
    for (size_t rank = 0; rank < reports.size(); ++rank) {
      if (reports[rank].step == MemberReport::kFresh) return static_cast<int>(rank);
    }
    return 0;
  }

  // One looks and restores; then it is the one who has the state, and the others receive it.
  Status ResumeIfNobodyHolds(std::vector<MemberReport>* reports) {
    if (!NobodyHolds(*reports)) return Ok();
    const auto resumer = static_cast<size_t>(WhoResumes(*reports));
    KEEL_TRY(MeetInDirectory());
    if (!refused_.empty()) return Ok();
    std::string mine;
    if (group_.rank() == static_cast<int>(resumer)) {
      mine = ResumeText((*reports)[resumer].step == MemberReport::kFresh);
    }
    KEEL_TRY_ASSIGN(const std::vector<std::string> texts, GatherTexts(mine));
    const std::string& verdict = texts[resumer];
    if (verdict.empty()) return Ok();
    if (verdict != kResumed) {
      refused_ = verdict;
      return Ok();
    }
    KEEL_TRY_ASSIGN(*reports, Reports());
    return Ok();
  }

  // The first rank takes hold of it, the others look whether theirs is the same.
  Status MeetInDirectory() {
    if (!saver().saves()) return Ok();
    const Status held = group_.rank() == 0 ? saver().HoldDirectory() : Ok();
    const std::string why = held.ok() ? "" : held.error().message;
    KEEL_TRY_ASSIGN(const std::vector<std::string> whys, GatherTexts(why));
    refused_ = whys[0];
    if (!refused_.empty()) return Ok();
    KEEL_TRY_ASSIGN(const std::vector<std::string> ids, GatherTexts(saver().directory_id()));
    return CheckDirectory(ids[0]);
  }

  // Empty: there is nothing to begin with; kResumed; or why not. Weights alone make a state only of
  // what the program built.
  std::string ResumeText(bool fresh) {
    ResumeConfig config = keeping_->resume;
    if (!fresh) config.init_from.clear();
    Stage("resuming");
    const auto outcome = Resume(state_, keeping_->files, config, Ticks(), keeping_->ahead);
    if (!outcome.ok()) return outcome.error().message;
    if (outcome->resumed) keeping_->resumed_from = outcome->from;
    if (!outcome->resumed && !outcome->from.empty()) {
      LogInfo("weights-loaded", {{"from", outcome->from}});
    }
    return outcome->from.empty() ? "" : kResumed;
  }

  Result<std::vector<MemberReport>> Reports() {
    Stage("reports");
    MemberReport report = state_.Report();
    report.fingerprint =
        keeping_ != nullptr ? keeping_->resume.fingerprint : peer_.fingerprint;
    report.together = Together();
    report.beginning = Beginning();
    if (keeping_ != nullptr && group_.rank() == 0) {
      const CheckpointConfig& config = saver().config();
      report.config = config.config;
      report.directory = saver().directory_id();
      report.save_every = static_cast<int64_t>(config.every_steps);
      report.codec = CodecName(config.codec);
    }
    KEEL_TRY_ASSIGN(const std::vector<std::string> texts, GatherTexts(ReportText(report)));
    std::vector<MemberReport> reports;
    for (const std::string& text : texts) {
      KEEL_TRY_ASSIGN(MemberReport one, ParseReport(text));
      reports.push_back(std::move(one));
    }
    return reports;
  }

  std::string Together() const {
    Fingerprint together;
    const bool saves = keeping_ != nullptr && saver().saves();
    together.Add("--checkpoint-dir", saves ? "given" : "none");
    const EvaluationPlan& plan = state_.program().evaluation;
    std::string evaluation = "none";
    if (plan.dataset) {
      evaluation = "every_" + std::to_string(plan.every) + "_of_" +
                   std::to_string(plan.dataset->size()) + "_by_" + std::to_string(plan.batch);
    }
    together.Add("evaluation", evaluation);
    return together.Text();
  }

  std::string Beginning() const {
    Fingerprint beginning;
    const auto given = [](bool is) { return is ? "given" : "none"; };
    beginning.Add("--resume-from", given(keeping_ && !keeping_->resume.resume_from.empty()));
    beginning.Add("--init-from", given(keeping_ && !keeping_->resume.init_from.empty()));
    return beginning.Text();
  }

  // Of any length.
  Result<std::vector<std::string>> GatherTexts(const std::string& text) {
    const RecordBytes mine = BytesOf(text);
    const uint64_t size = mine.size();
    RecordBytes size_bytes(sizeof size);
    std::memcpy(size_bytes.data(), &size, sizeof size);
    const std::vector<size_t> lengths(static_cast<size_t>(group_.size()), sizeof size);
    KEEL_TRY_ASSIGN(const auto all_sizes, Gather(group_, size_bytes, lengths));
    std::vector<size_t> sizes;
    for (const RecordBytes& bytes : all_sizes) {
      uint64_t one = 0;
      std::memcpy(&one, bytes.data(), sizeof one);
      sizes.push_back(one);
    }
    KEEL_TRY_ASSIGN(const auto all, Gather(group_, mine, sizes));
    std::vector<std::string> texts;
    for (const RecordBytes& bytes : all) {
      const auto* const begin = reinterpret_cast<const char*>(bytes.data());
      texts.emplace_back(begin, bytes.size());
    }
    return texts;
  }

  Status MoveState(const ReformPlan& plan, const MemberReport& source, Part part) {
    std::vector<bool> has_it;
    bool any_lacks_it = false;
    for (const Part one : plan.parts) {
      has_it.push_back(one != Part::kReceives);
      any_lacks_it |= one == Part::kReceives;
    }
    if (!any_lacks_it) return Ok();
    Stage("moving the state");
    if (part == Part::kReceives) state_.BeginReceiving();
    KEEL_TRY(Transfer(group_, state_.registry().FlatAliases(), has_it,
                      [tick = Ticks()](uint64_t, uint64_t) { tick(); }));
    if (part == Part::kReceives) KEEL_TRY(state_.EndReceiving(source));
    return Ok();
  }

  // All bits of the state, once an epoch.
  Status CompareStates(const ReformPlan& plan) {
    Stage("comparing states");
    const Digest own = state_.registry().StateDigest();
    const RecordBytes mine = BytesOf(own.Hex());
    const std::vector<size_t> sizes(static_cast<size_t>(group_.size()), mine.size());
    KEEL_TRY_ASSIGN(const auto all, Gather(group_, mine, sizes));
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (all[static_cast<size_t>(rank)] == all[static_cast<size_t>(plan.source)]) continue;
      return Error{Code::kCorrupt,
                   "at step " + std::to_string(state_.step()) + " the state of " +
                       group_.NameOf(rank) + " differs from that of " +
                       group_.NameOf(plan.source) + ", although both report the same steps" +
                       (plan.step == 0 ? ": build the model from the seed alone" : "")};
    }
    TellResumed(own);
    return Ok();
  }

  // By who restored it, once all have it.
  void TellResumed(const Digest& digest) {
    if (keeping_ == nullptr || keeping_->resumed_from.empty()) return;
    const std::string from = std::exchange(keeping_->resumed_from, "");
    if (keeping_->on_resumed) keeping_->on_resumed(from, digest);
  }

  // --- Steps ---

  VoteRecord Record(const EpochPeer::Wishes& wishes, std::vector<double> losses) {
    VoteRecord record;
    record.step = static_cast<int64_t>(state_.step());
    record.stop = wishes.stop;
    record.join_waiting = wishes.join;
    if (wishes.left) record.deadline_ms = *wishes.left / std::chrono::milliseconds(1);
    if (keeping_ != nullptr && saver().saves()) {
      if (wishes.save) saver().WantSave();
      const SaveVote vote = saver().Vote();
      record.saving = vote.state;
      record.save = vote.wanted;
      if (const auto needs = saver().ExpectedSave(group_.size())) record.save_ns = needs->count();
    }
    if (losses.empty()) losses.resize(static_cast<size_t>(Own().count()));
    record.losses = std::move(losses);
    return record;
  }

  LaneRange Own() const { return LanesOf(group_.rank(), group_.size(), Lanes()); }

  Result<std::optional<EpochEnd>> Step() {
    const ProfileRange range(state_.config().device, "step");
    At(Phase::kComputing);
    LaneWork work = ComputeLanes(state_, *exchange_);
    if (!work.status.ok()) return Failed(work);
    work.times.save = times_.save;   // what began to be saved after the step before
    times_ = work.times;
    StepWatch watch(times_);
    At(Phase::kVoting);
    const EpochPeer::Wishes wishes = peer_.wishes();
    VoteRecord record = Record(wishes, std::move(work.losses));
    record.compute_ns = times_.Own().count();
    const uint64_t every = state_.config().digest_every;
    if (every > 0 && state_.step() % every == every - 1) {
      record.parameters = state_.ParametersDigest();
    }
    KEEL_TRY_ASSIGN(const std::vector<VoteRecord> records, VoteOn(record));
    watch.Add(&StepTimes::vote);
    At(Phase::kApplying);
    KEEL_TRY(CompareParameters(records));
    std::vector<float> lane_losses;
    compute_ns_.clear();
    for (const VoteRecord& one : records) {
      compute_ns_.push_back(one.compute_ns);
      for (const double loss : one.losses) lane_losses.push_back(static_cast<float>(loss));
    }
    KEEL_TRY(Apply(lane_losses));
    return AfterVote(records, wishes);
  }

  Result<std::vector<VoteRecord>> VoteOn(const VoteRecord& record) {
    const ProfileRange range(state_.config().device, "vote");
    return Vote(group_, record, Lanes());
  }

  // --- Saving at once: all are at the same step, and nobody goes on before it is over ---

  // An error of the group, or that the state could not be saved: the same for everybody.
  Status SaveTogether() {
    At(Phase::kSaving);
    KEEL_TRY(saver().EndUnderWay(Waiting()));
    KEEL_TRY_ASSIGN(bool committed, IsCommittedForAll());
    std::string why;
    if (!committed) {
      KEEL_TRY_ASSIGN(why, WriteAndCommit());
      // One that left alone at this very step may have been faster.
      committed = why.empty();
      if (!committed) {
        KEEL_TRY_ASSIGN(committed, IsCommittedForAll());
      }
    }
    if (!committed) return NotSaved(state_.step(), why);
    saved_step_ = state_.step();
    return Ok();
  }

  // Rank 0 looks for all.
  Result<bool> IsCommittedForAll() {
    const bool committed = group_.rank() == 0 && saver().IsCommitted();
    KEEL_TRY_ASSIGN(const std::vector<std::string> said,
                    GatherTexts(committed ? kCommitted : ""));
    return said[0] == kCommitted;
  }

  // Empty, or why the state could not be saved: the same for everybody.
  Result<std::string> WriteAndCommit() {
    const Status written = saver().WriteShare(Waiting());
    KEEL_TRY_ASSIGN(std::vector<std::string> said,
                    GatherTexts(written.ok() ? "" : written.error().message));
    const std::string why = FaultsIn(said);
    if (!why.empty()) {
      saver().DropShare();
      return why;
    }
    std::string mine;
    if (group_.rank() == 0) {
      const Status committed = saver().CommitShares();
      if (!committed.ok()) mine = committed.error().message;
    }
    KEEL_TRY_ASSIGN(said, GatherTexts(mine));
    return said[0];
  }

  // What all said who failed: one's failure may be another's doing, who removed what both wrote to.
  std::string FaultsIn(const std::vector<std::string>& said) const {
    constexpr size_t kNamedMax = 4;
    std::vector<std::string> faults;
    for (size_t rank = 0; rank < said.size(); ++rank) {
      if (said[rank].empty()) continue;
      faults.push_back(group_.NameOf(static_cast<int>(rank)) + ": " + said[rank]);
    }
    if (faults.size() > kNamedMax) {
      const std::string more = "and " + std::to_string(faults.size() - kNamedMax) + " more";
      faults.resize(kNamedMax);
      faults.push_back(more);
    }
    return JoinList(faults, "; ");
  }

  Error Failed(const LaneWork& work) const {
    if (!work.users_fault) return work.status.error();
    return {Code::kInvalid, group_.NameOf(group_.rank()) + ", " + work.status.error().message};
  }

  // What the step began with: a difference was there before its gradients.
  Status CompareParameters(const std::vector<VoteRecord>& records) const {
    for (size_t rank = 1; rank < records.size(); ++rank) {
      if (records[rank].parameters == records[0].parameters) continue;
      return Error{Code::kCorrupt, "before step " + std::to_string(state_.step()) +
                                       " the parameters of " +
                                       group_.NameOf(static_cast<int>(rank)) +
                                       " differ from those of " + group_.NameOf(0) +
                                       ": bits have changed in somebody's memory"};
    }
    return Ok();
  }

  // A step that is decided, by its vote or by the reports of those who saw it succeed: the program
  // hears of both.
  Status Apply(const std::vector<float>& lane_losses) {
    const ProfileRange range(state_.config().device, "apply");
    StepWatch watch(times_);
    if (keeping_ != nullptr) saver().AwaitCopy();
    watch.Add(&StepTimes::save);
    StepReport report;
    report.lane_losses = lane_losses;
    report.data_epoch = state_.samples().DataEpoch(state_.cursor());
    KEEL_TRY_ASSIGN(report.outcome, state_.Apply(report.lane_losses));
    watch.Add(&StepTimes::optimizer);
    if (!report.outcome.applied && group_.rank() == 0) {
      LogWarn("step-skipped", {{"step", state_.step() - 1}, {"why", report.outcome.note}});
    }
    report.step = state_.step();
    report.loss = TrainState::MeanLoss(report.lane_losses);
    report.times = std::exchange(times_, {});
    if (peer_.made) peer_.made(report.step, report.loss, report.times);
    if (!state_.program().on_step) return Ok();
    report.rank = group_.rank();
    report.world = group_.size();
    report.compute_ns = std::exchange(compute_ns_, {});
    for (size_t rank = 0; rank < report.compute_ns.size(); ++rank) {
      report.lanes.push_back(LanesOf(static_cast<int>(rank), group_.size(), Lanes()).count());
    }
    const std::string where =
        group_.NameOf(group_.rank()) + ", after step " + std::to_string(report.step);
    Place("on_step");
    const Result<Status> told =
        Guard(where, [&] { return state_.program().on_step(report); });
    // Not under their own codes, by which they could be taken for a break of the group.
    if (!told.ok()) return Error{Code::kInvalid, told.error().message};
    return told->ok() ? Ok() : Error{Code::kInvalid, where + ": " + told->error().message};
  }

  // --- Evaluation ---

  // Everybody is at the same step here, so everybody evaluates or nobody does. Where the membership
  // changes at such a step, it is evaluated again.
  Status EvaluateIfDue() {
    const EvaluationPlan& plan = state_.program().evaluation;
    if (!plan.dataset || state_.step() == 0 || state_.step() % plan.every != 0) return Ok();
    const EvaluationPeer peer{
        .at = [this](uint64_t) { At(Phase::kEvaluating); },
        .stop = [this] {
          const EpochPeer::Wishes wishes = peer_.wishes();
          if (wishes.save && keeping_ != nullptr) saver().WantSave();   // told only once
          return wishes.stop;
        }};
    const EvaluationOutcome outcome = Evaluate(state_, group_, peer);
    const std::string who = group_.NameOf(group_.rank());
    if (!outcome.report.ok()) {
      const Error& error = outcome.report.error();
      if (!outcome.users_fault) return error;
      return Error{Code::kInvalid, who + ", " + error.message};
    }
    if (peer_.evaluated) peer_.evaluated(outcome.report->took);
    if (outcome.report->abandoned || !state_.program().on_evaluation) return Ok();
    const std::string where = who + ", after evaluation at step " + std::to_string(state_.step());
    Place("on_evaluation");
    const Result<Status> told =
        Guard(where, [&] { return state_.program().on_evaluation(*outcome.report); });
    if (!told.ok()) return Error{Code::kInvalid, told.error().message};
    return told->ok() ? Ok() : Error{Code::kInvalid, where + ": " + told->error().message};
  }

  // Everybody has the same records, so everybody ends here or nobody does.
  Result<std::optional<EpochEnd>> AfterVote(const std::vector<VoteRecord>& records,
                                            const EpochPeer::Wishes& wishes) {
    using End = std::optional<EpochEnd>;
    if (state_.step() >= state_.config().steps) return End();   // no wish counts any more
    bool stop = false;
    bool join = false;
    std::vector<SaveVote> saves;
    for (const VoteRecord& record : records) {
      stop |= record.stop;
      join |= record.join_waiting;
      saves.push_back({record.saving, record.save});
    }
    if (keeping_ != nullptr && saver().saves()) {
      if (stop) {
        KEEL_TRY(SaveToStop(records));
      } else {
        StepWatch watch(times_);
        ActOnSave(DecideSave(saves, state_.step(), saver().terms().every_steps), join);
        watch.Add(&StepTimes::save);
      }
    }
    if (stop && wishes.stop) return End(EpochEnd::kStopped);
    if (stop || join) return End(EpochEnd::kBoundary);
    return End();
  }

  // One that begins where the epoch ends would be given up at once.
  void ActOnSave(const SaveDecision& decision, bool epoch_ends) {
    if (epoch_ends && decision.action == SaveAction::kBegin) return saver().WantSave();
    saver().Act(decision);
  }

  // Who was told to stop stops, saved or not.
  Status SaveToStop(const std::vector<VoteRecord>& records) {
    const StopDecision decision = DecideStopSave(StopVotesOf(records));
    if (decision.what != StopSave::kSave) TellItDoesNotFit(decision);
    Status saved;
    if (decision.what == StopSave::kSave) saved = SaveTogether();
    if (decision.what == StopSave::kFinish) saved = FinishUnderWay();
    if (!saved.ok() && IsBreak(saved.error())) return saved;
    if (group_.rank() != 0) return Ok();
    if (!saved.ok()) LogError("save-failed", {{"reason", saved.error().message}});
    if (!saved_step_) TellUnsaved(records);
    return Ok();
  }

  // --- Where a save does not fit in the time that is left ---

  static std::vector<StopVote> StopVotesOf(const std::vector<VoteRecord>& records) {
    std::vector<StopVote> votes;
    for (const VoteRecord& record : records) {
      StopVote vote{.state = record.saving};
      if (record.deadline_ms) vote.left = std::chrono::milliseconds(*record.deadline_ms);
      if (record.save_ns) vote.needs = Duration(*record.save_ns);
      votes.push_back(vote);
    }
    return votes;
  }

  void TellItDoesNotFit(const StopDecision& decision) const {
    if (group_.rank() != 0) return;
    const bool finishes = decision.what == StopSave::kFinish;
    LogError("save-does-not-fit",
             {{"step", state_.step()},
              {"needs", DurationText(decision.needs)},
              {"left", DurationText(decision.left)},
              {"instead", finishes ? "finishing the save under way" : "leaving at once"}});
  }

  void TellUnsaved(const std::vector<VoteRecord>& records) {
    const bool some_stay = std::any_of(records.begin(), records.end(),
                                       [](const VoteRecord& record) { return !record.stop; });
    saver().TellUnsaved(some_stay ? "those who stay go on with them" : "lost");
  }

  // An error of the group, or that it could not be committed: the same for everybody.
  Status FinishUnderWay() {
    At(Phase::kSaving);
    const Status written = saver().FinishShare(Waiting());
    KEEL_TRY_ASSIGN(std::vector<std::string> said,
                    GatherTexts(written.ok() ? "" : written.error().message));
    std::string why = FaultsIn(said);
    if (why.empty()) {
      const Status committed = group_.rank() == 0 ? saver().CommitShares() : Ok();
      KEEL_TRY_ASSIGN(said, GatherTexts(committed.ok() ? "" : committed.error().message));
      why = said[0];
    }
    const Status status = why.empty() ? Ok() : Status(Error{Code::kIo, why});
    saver().EndShare(status);
    return status;
  }

  // What texts of members mean.
  static constexpr const char* kResumed = "resumed";
  static constexpr const char* kCommitted = "committed";
  static constexpr const char* kMissing = "missing";

  TrainState& state_;
  const std::string prefix_;
  EpochGroup& group_;
  const EpochPeer& peer_;
  Keeping* const keeping_;
  std::unique_ptr<Exchange> exchange_;
  std::string refused_;                 // why nobody may begin, or not this member
  std::optional<uint64_t> saved_step_;
  StepTimes times_;                     // of the step under way
  std::vector<int64_t> compute_ns_;     // of its votes
};

// For the others to come to the epoch's end: they all know already how it ends.
constexpr std::chrono::seconds kPartLimit(1);

// All agreed to end here; once all have come, everybody has the records it ends by. Who is lost
// now, or does not come, changes nothing any more.
void PartInOrder(EpochGroup& group) {
  group.LimitTo(kPartLimit);
  const std::vector<size_t> sizes(static_cast<size_t>(group.size()), 1);
  if (Gather(group, RecordBytes(1), sizes).ok()) group.Parted();
}

}  // namespace

Result<EpochOutcome> RunEpoch(TrainState& state, const EpochGroup::Spec& spec,
                              const CancelToken& broken, const EpochPeer& peer,
                              Keeping* keeping) {
  const auto run = [&]() -> Result<EpochOutcome> {
    KEEL_TRY_ASSIGN(const std::unique_ptr<EpochGroup> group, EpochGroup::Build(spec, broken));
    const std::shared_ptr<void> watch =
        peer.watch([&group](const std::string& reason) { group->Abort(reason); });
    Result<EpochOutcome> ended = EpochRun(state, spec, *group, peer, keeping).Run();
    if (ended.ok() && ended->end != EpochEnd::kRefused) PartInOrder(*group);
    return ended;
  };
  Result<EpochOutcome> outcome = run();
  if (keeping != nullptr) keeping->checkpointer.EndEpoch();
  // Lanes of a step that was not made have left their traces in the buffers.
  if (!state.pending()) state.Drop();
  if (outcome.ok() || !IsBreak(outcome.error())) return outcome;
  return EpochOutcome{EpochEnd::kBroken, outcome.error().message, false};
}

}  // namespace keel
