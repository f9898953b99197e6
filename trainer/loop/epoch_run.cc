// Meet, then step and vote, and save as the votes say.
#include "trainer/loop/epoch_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/exchange/exchange.h"
#include "trainer/exchange/gather.h"
#include "trainer/group/nccl_links.h"
#include "trainer/loop/catch_up.h"
#include "trainer/loop/epoch_parts.h"
#include "trainer/loop/evaluate_due.h"
#include "trainer/loop/held_bits.h"
#include "trainer/loop/lane_placer.h"
#include "trainer/loop/lane_work.h"
#include "trainer/loop/meet.h"
#include "trainer/loop/recheck.h"
#include "trainer/loop/slow_steps.h"
#include "trainer/loop/stop_save.h"
#include "trainer/loop/vote.h"
#include "trainer/numerics/profile_range.h"

namespace keel {
namespace {

// For the mirror of a job that has finished, where it is told to stop and not by when.
constexpr Duration kStopLimit = std::chrono::seconds(30);

class EpochRun {
 public:
  EpochRun(TrainState& state, const EpochGroup::Spec& spec, EpochGroup& group,
           const EpochCallbacks& peer, Keeping* keeping)
      : parts_{state, spec.prefix, group, peer, keeping}, state_(state), group_(group),
        placer_(group.size(), parts_.lanes(), MovesLanes(state.config())), recheck_(parts_),
        slow_steps_(group.rank()) {}

  Result<EpochOutcome> Run() {
    KEEL_TRY(OpenExchange());
    KEEL_TRY_ASSIGN(const Met met,
                    Meet(parts_, [this](const auto& losses) { return Apply(losses); }));
    if (!met.refused.empty()) {
      return EpochOutcome{EpochEnd::kRefused, met.refused, group_.rank() == 0};
    }
    pieces_left_ = met.pieces;
    recheck_.BeginEpoch(met.recheck_every, met.unproven, met.alike);
    state_.SetDoubts(met.doubts);
    lanes_moved_ = placer_.Begin(met.costs);
    if (!met.catching_up.empty()) catch_up_.emplace(parts_, met.catching_up, LanesOfOthers(met));
    KEEL_TRY(Place());
    if (parts_.saves()) parts_.saver().BeginMirroring();
    for (;;) {
      KEEL_TRY_ASSIGN(const bool all_hold, CatchUpIfNeeded());
      if (!all_hold) return Outcome(EpochEnd::kBoundary);
      KEEL_TRY_ASSIGN(const bool evaluated, EvaluateIfDue(parts_));
      if (evaluated && MadeAll()) break;
      KEEL_TRY_ASSIGN(const std::optional<EpochEnd> end, evaluated ? Step() : VoteOnStop());
      if (end) return Outcome(*end);
    }
    KEEL_TRY(CompareRest());
    if (parts_.saves()) {
      KEEL_TRY(SaveTogether(parts_));
      saved_step_ = state_.step();
      KEEL_TRY_ASSIGN(not_mirrored_,
                      AwaitMirror(parts_, /*all=*/true, [this] { return ToldToEnd(); }));
    }
    // No worker leaves before all are known to have made the last step.
    parts_.At(Phase::kVoting);
    KEEL_TRY(Vote(group_, Record({}, {}), Lanes()));
    return Outcome(EpochEnd::kFinished);
  }

 private:
  EpochOutcome Outcome(EpochEnd end) const {
    return {end, refused_, group_.rank() == 0, saved_step_, not_mirrored_};
  }

  // While the last save is waited for, nobody votes on stops any more.
  std::optional<TimePoint> ToldToEnd() {
    const EpochCallbacks::Wishes wishes = parts_.peer.wishes();
    if (!wishes.stop && !wishes.left) return std::nullopt;
    const TimePoint by = RealClock().Monotonic() + wishes.left.value_or(kStopLimit);
    return end_by_ = std::min(end_by_.value_or(by), by);
  }

  Status OpenExchange() {
    const TrainConfig& config = state_.config();
    const Exchange::Options options{.lanes = parts_.lanes(), .reduce = config.reduce};
    // Gradients of a step that was not made would be carried into the new exchange.
    if (!state_.pending()) {
      for (at::Tensor parameter : state_.parameters()) parameter.mutable_grad() = at::Tensor();
    }
    KEEL_TRY(state_.MakeRoomForGradients());
    KEEL_TRY_ASSIGN(exchange_, Exchange::Open(state_.gradients(), group_, options));
    // A worker without a state has used none of this memory yet. It warms it up now, while it may
    // have to wait for a checkpoint or a transfer.
    if (!state_.whole()) exchange_->WarmUp();
    return Ok();
  }

  // --- Steps ---

  bool MadeAll() const { return state_.step() >= state_.config().steps; }

  // Who catches up has nothing to save, and would leave alone. But a stop of the job, at which all
  // save together, may come to its host first: it waits until the others would have heard of it.
  bool SaysStop(const EpochCallbacks::Wishes& wishes) {
    if (!wishes.stop || !CatchesUp(static_cast<size_t>(group_.rank()))) return wishes.stop;
    if (!stop_heard_) stop_heard_ = RealClock().Monotonic();
    const Duration spread = std::min(kStopSpread, wishes.left.value_or(kStopLimit) / 3);
    return RealClock().Monotonic() - *stop_heard_ >= spread;
  }

  VoteRecord Record(const EpochCallbacks::Wishes& wishes, std::vector<double> losses) {
    VoteRecord record;
    record.step = static_cast<int64_t>(state_.step());
    record.stop = SaysStop(wishes);
    record.leaving = wishes.stop;
    record.join_waiting = wishes.join;
    if (wishes.left) record.deadline_ms = *wishes.left / std::chrono::milliseconds(1);
    if (parts_.saves()) {
      if (wishes.save) parts_.saver().beside().WantSave();
      const SaveVote vote = parts_.saver().beside().Vote();
      record.saving = vote.state;
      record.save = vote.wanted;
      const auto needs = parts_.saver().ExpectedSave(group_.size());
      if (needs) record.save_ns = needs->count();
    }
    if (losses.empty()) losses.resize(static_cast<size_t>(Own().count()));
    record.losses = std::move(losses);
    return record;
  }

  bool catching_up() const { return catch_up_ && catch_up_->under_way(); }
  bool CatchesUp(size_t rank) const { return catch_up_ && catch_up_->Is(rank); }
  const Placement& Lanes() const { return catching_up() ? catch_up_->lanes() : placer_.now(); }
  LaneRange Own() const { return Lanes()[static_cast<size_t>(group_.rank())]; }

  // A plain all-reduce ships the same, whoever computes what.
  static bool MovesLanes(const TrainConfig& config) {
    return config.places_lanes && config.reduce == Reduce::kTree;
  }

  Result<std::optional<EpochEnd>> Step() {
    const ProfileRange range(state_.config().device, "step");
    parts_.At(Phase::kComputing);
    KEEL_TRY_ASSIGN(const std::optional<Digest> piece, PieceToCompare());
    if (catching_up()) KEEL_TRY(catch_up_->BeginStep());
    const RecheckTask recheck = recheck_.TaskFor(Lanes(), !catching_up());
    LaneWork work = ComputeLanes(state_, *exchange_, recheck);
    if (!work.status.ok()) return Failed(work);
    if (catching_up()) KEEL_TRY(catch_up_->EndStep());
    work.times.save = times_.save;   // for the save that began after the step before
    times_ = work.times;
    StepWatch watch(times_);
    parts_.At(Phase::kVoting);
    const EpochCallbacks::Wishes wishes = parts_.peer.wishes();
    VoteRecord record = Record(wishes, std::move(work.losses));
    record.piece = piece;
    KEEL_TRY(recheck_.FillIn(work, record));
    if (recheck != RecheckTask{}) watch.Add(&StepTimes::recheck);
    record.compute_ns = times_.Own().count();
    record.exchange_ns = times_.exchange.count();
    const uint64_t every = state_.config().digest_every;
    const bool is_turn = every > 0 && state_.step() % every == every - 1;
    if (is_turn && !catching_up() && recheck_.all_compute_alike()) {
      record.parameters = state_.ParametersDigest();
    }
    if (catch_up_) catch_up_->FillIn(record);
    KEEL_TRY_ASSIGN(const std::vector<VoteRecord> records, VoteOn(record));
    watch.Add(&StepTimes::vote);
    parts_.At(Phase::kApplying);
    Result<Recheck::Outcome> judged =
        recheck_.JudgeBegun(records, [this](size_t rank) { return CatchesUp(rank); });
    if (judged.ok() && judged->what == Recheck::Outcome::What::kApply) {
      judged = recheck_.Judge(records, work, *exchange_);
    }
    work.own_tensors = work.other_tensors = {};
    TellChecks(records);
    if (!judged.ok()) return judged.error();
    if (judged->what != Recheck::Outcome::What::kApply) return NotApplied(*judged);
    std::vector<float> lane_losses;
    compute_ns_.clear();
    for (const VoteRecord& one : records) {
      compute_ns_.push_back(one.compute_ns);
      for (const double loss : one.losses) lane_losses.push_back(static_cast<float>(loss));
    }
    KEEL_TRY(Apply(lane_losses));
    if (catching_up()) {
      catch_up_->Note(records);
      KEEL_TRY_ASSIGN(const bool all_hold, EndCatchingUp());
      if (!all_hold) return std::optional<EpochEnd>(EpochEnd::kBoundary);
    } else {
      KEEL_TRY(PlaceLanes(records));
    }
    if (MadeAll()) return std::optional<EpochEnd>();   // no wish counts any more
    return AfterVote(records, wishes);
  }

  // A stop has cut the evaluation of this step short, so the state is saved before that.
  Result<std::optional<EpochEnd>> VoteOnStop() {
    const EpochCallbacks::Wishes wishes = parts_.peer.wishes();
    KEEL_TRY_ASSIGN(const std::vector<VoteRecord> records, VoteOn(Record(wishes, {})));
    return AfterVote(records, wishes);
  }

  void TellChecks(const std::vector<VoteRecord>& records) {
    WorkerChecks checks = recheck_.TakeChecks();
    if (!catching_up()) checks.slow_steps = slow_steps_.Note(records, Lanes());
    if (parts_.peer.checked) parts_.peer.checked(checks);
  }

  // All members come to it together.
  Result<std::optional<EpochEnd>> NotApplied(const Recheck::Outcome& judged) {
    state_.Drop();
    // A step is made again in an epoch of its own, since positions only rise within one.
    if (judged.what == Recheck::Outcome::What::kAgain) return std::optional(EpochEnd::kBoundary);
    refused_ = judged.reason;
    if (!parts_.saves()) return std::optional(EpochEnd::kDoubted);
    KEEL_TRY(CompareRest());
    const Status saved = SaveTogether(parts_, Phase::kParked);
    if (!saved.ok() && IsBreak(saved.error())) return saved.error();
    if (saved.ok()) {
      saved_step_ = state_.step();
      KEEL_TRY_ASSIGN(not_mirrored_,
                      AwaitMirror(parts_, /*all=*/true, [this] { return ToldToEnd(); }));
      if (!not_mirrored_.empty()) refused_ += ". It is saved, but not mirrored: " + not_mirrored_;
    } else if (group_.rank() == 0) {
      LogError("save-failed", {{"reason", saved.error().message}});
      parts_.saver().TellUnsaved("these steps are lost");
    }
    return std::optional(EpochEnd::kDoubted);
  }

  // --- Members that catch up ---

  // They are not asked again until nobody catches up any more.
  Placement LanesOfOthers(const Met& met) const {
    std::vector<bool> holds = met.catching_up;
    holds.flip();
    const PlacementCosts costs = CostsOf(holds, met.costs);
    const auto count = static_cast<int>(costs.lane_ns.size());
    return SpreadOver(holds, MovesLanes(state_.config())
                                 ? BestPlacement(parts_.lanes(), Completed(costs))
                                 : EvenPlacement(count, parts_.lanes()));
  }

  // Before a stop: so that those who stay have the state, and all save it together.
  bool HasTimeToCatchUp(const std::vector<VoteRecord>& records) const {
    const StopDecision stop = DecideStopBy(records);
    const Duration rest = catch_up_->rest() * 3 / 2;   // it is only expected
    return !stop.left || rest + stop.needs <= *stop.left;
  }

  // What comes next may need all members. False: one of them did not come to the same state, and
  // all meet again.
  Result<bool> CatchUpIfNeeded() {
    if (!catching_up() || (!MadeAll() && !EvaluationIsDue(parts_))) return true;
    KEEL_TRY(catch_up_->Rest());
    return EndCatchingUp();
  }

  Result<bool> EndCatchingUp() {
    if (catch_up_->state() == CatchUp::State::kFailed) return false;
    if (catching_up()) return true;
    catch_up_.reset();
    pieces_left_ = 0;   // all members have just compared all
    KEEL_TRY(Place());
    return true;
  }

  // All have the same records, and so the same placement.
  Status PlaceLanes(const std::vector<VoteRecord>& records) {
    std::vector<int64_t> compute_ns;
    std::vector<int64_t> exchange_ns;
    for (const VoteRecord& record : records) {
      compute_ns.push_back(record.compute_ns);
      exchange_ns.push_back(record.exchange_ns);
    }
    lanes_moved_ = placer_.Note(compute_ns, exchange_ns);
    const PlacementCosts& costs = placer_.costs();
    state_.NoteSpeed({costs.lane_ns[static_cast<size_t>(group_.rank())], costs.link_ns});
    return lanes_moved_ ? Place() : Ok();
  }

  // What the placer has decided counts once nobody catches up.
  Status Place() {
    if (lanes_moved_ && !catching_up()) {
      if (group_.rank() == 0) {
        LogInfo("lanes-moved", {{"step", state_.step()}, {"reason", *lanes_moved_}});
      }
      lanes_moved_.reset();
    }
    return exchange_->Place(Lanes());
  }

  Result<std::vector<VoteRecord>> VoteOn(const VoteRecord& record) {
    const ProfileRange range(state_.config().device, "vote");
    return Vote(group_, record, Lanes());
  }

  Error Failed(const LaneWork& work) const {
    if (!work.users_fault) return work.status.error();
    return {Code::kInvalid, group_.NameOf(group_.rank()) + ", " + work.status.error().message};
  }

  // Of what steps made together have proved, some of the bits are looked at in each of the epoch's
  // first steps, before its lanes.
  Result<std::optional<Digest>> PieceToCompare() {
    if (pieces_left_ == 0) return std::optional<Digest>();
    --pieces_left_;
    if (CatchesUp(static_cast<size_t>(group_.rank()))) return std::optional<Digest>();
    KEEL_TRY_ASSIGN(const Digest digest, CatchTorch("comparing states", [&] {
      return state_.PieceDigest(pieces_left_);
    }));
    return std::optional<Digest>(digest);
  }

  // All members call it at the same step, before what they hold is saved or told.
  Status CompareRest() {
    if (pieces_left_ == 0) return Ok();
    Digester all;
    while (pieces_left_ > 0) {
      KEEL_TRY_ASSIGN(const std::optional<Digest> piece, PieceToCompare());
      all.Update(piece->bytes);
    }
    KEEL_TRY_ASSIGN(const std::vector<Digest> digests, GatherDigests(group_, all.Current()));
    HeldBits held;
    for (size_t rank = 0; rank < digests.size(); ++rank) {
      held.Add(static_cast<int>(rank), digests[rank]);
    }
    return held.JudgeAndPart(group_, state_.step());
  }

  // Applies a step that is decided, by its vote or by reports of workers that saw it succeed, and
  // tells the program.
  Status Apply(const std::vector<float>& lane_losses) {
    const ProfileRange range(state_.config().device, "apply");
    StepWatch watch(times_);
    if (parts_.keeping != nullptr) parts_.saver().beside().AwaitCopy();
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
    if (parts_.peer.made) parts_.peer.made(report.step, report.loss, report.times);
    if (!state_.program().on_step) return Ok();
    report.rank = group_.rank();
    report.world = group_.size();
    report.epoch = parts_.peer.epoch;
    report.compute_ns = std::exchange(compute_ns_, {});
    for (int rank = 0; rank < static_cast<int>(report.compute_ns.size()); ++rank) {
      report.lanes.push_back(Lanes()[static_cast<size_t>(rank)].count());
    }
    const std::string where =
        group_.NameOf(group_.rank()) + ", after step " + std::to_string(report.step);
    parts_.Place("on_step");
    KEEL_TRY(CallProgram(where, [&] { return state_.program().on_step(report); }));
    return state_.KeepBuffers();
  }

  // All members have the same records, so all end the epoch here or none does.
  Result<std::optional<EpochEnd>> AfterVote(const std::vector<VoteRecord>& records,
                                            const EpochCallbacks::Wishes& wishes) {
    using End = std::optional<EpochEnd>;
    bool stop = false;
    bool stops_together = false;   // a newcomer has nothing to save, and leaves alone
    bool join = false;
    std::vector<SaveVote> saves;
    for (size_t rank = 0; rank < records.size(); ++rank) {
      const VoteRecord& record = records[rank];
      stop |= record.stop;
      stops_together |= record.stop && !CatchesUp(rank);
      join |= record.join_waiting;
      saves.push_back({record.saving, record.save});
    }
    if (stops_together && catching_up()) {
      // Else who holds the state and was told to stop saves it alone.
      if (!HasTimeToCatchUp(records)) return End(EpochEnd::kBoundary);
      KEEL_TRY(catch_up_->Rest());
      KEEL_TRY_ASSIGN(const bool all_hold, EndCatchingUp());
      if (!all_hold) return End(EpochEnd::kBoundary);
    }
    join &= !catching_up() || catch_up_->has_hardly_begun();
    if (parts_.saves()) {
      if (stops_together) {
        KEEL_TRY(CompareRest());
        KEEL_TRY_ASSIGN(const bool saved, SaveToStop(parts_, records));
        if (saved) saved_step_ = state_.step();
      } else {
        StepWatch watch(times_);
        KEEL_TRY(ActOnSave(
            DecideSave(saves, state_.step(), parts_.saver().terms().every_steps), join));
        watch.Add(&StepTimes::save);
      }
    }
    if (stop && wishes.stop) return End(EpochEnd::kStopped);
    if (stop || join) return End(EpochEnd::kBoundary);
    return End();
  }

  // A save that begins as the epoch ends would be given up at once, and who catches up has nothing
  // to write, so it is wanted again instead.
  Status ActOnSave(const SaveDecision& decision, bool epoch_ends) {
    SaveBeside& beside = parts_.saver().beside();
    if (decision.action == SaveAction::kBegin) {
      if (epoch_ends || catching_up()) {
        beside.WantSave();
        return Ok();
      }
      KEEL_TRY(CompareRest());
    }
    beside.Act(decision);
    return Ok();
  }

  const EpochParts parts_;
  TrainState& state_;
  EpochGroup& group_;
  std::unique_ptr<Exchange> exchange_;
  LanePlacer placer_;
  Recheck recheck_;
  SlowSteps slow_steps_;
  std::optional<CatchUp> catch_up_;     // while members do, or one has failed to
  std::optional<uint64_t> saved_step_;
  std::string not_mirrored_;
  std::string refused_;                 // why the job cannot go on
  std::optional<TimePoint> end_by_;   // while the mirror is waited for, if that is told
  uint64_t pieces_left_ = 0;            // of the state, to be compared by as many steps
  StepTimes times_;                     // of the step under way
  std::vector<int64_t> compute_ns_;     // each rank's, from its votes
  std::optional<std::string> lanes_moved_;   // why; until they are
  std::optional<TimePoint> stop_heard_;      // by one that catches up
};

}  // namespace

Result<EpochOutcome> RunEpoch(TrainState& state, const EpochGroup::Spec& spec,
                              const CancelToken& broken, const EpochCallbacks& peer,
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
  if (spec.gpu && !outcome.ok()) LeaveIfLost(outcome.error());
  if (keeping != nullptr) keeping->checkpointer.EndEpoch();
  // What an epoch that broke has enqueued on a GPU may still write where it was told to.
  if (spec.gpu) state.LeaveGradients();
  if (!state.pending()) state.Drop();   // lanes of a step that was not made changed the buffers
  if (outcome.ok() || !IsBreak(outcome.error())) return outcome;
  return EpochOutcome{EpochEnd::kBroken, outcome.error().message, false};
}

}  // namespace keel
