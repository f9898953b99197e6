// Build, report, catch up, compare; then step and vote.
#include "trainer/epoch_run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/log.h"
#include "store/torch_guard.h"
#include "trainer/evaluation.h"
#include "trainer/exchange.h"
#include "trainer/gather.h"
#include "trainer/lane_work.h"
#include "trainer/reform.h"
#include "trainer/transfer.h"
#include "trainer/vote.h"

namespace keel {
namespace {

// Phases of a position: they rise within a step.
enum Phase { kMeeting, kComputing, kVoting, kApplying, kEvaluating };

// Whether the group failed, not what it was used for.
bool IsBreak(const Error& error) {
  return error.code == Code::kCancelled || error.code == Code::kPeerLost ||
         error.code == Code::kTimeout || error.code == Code::kStaleEpoch;
}

RecordBytes BytesOf(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

class EpochRun {
 public:
  EpochRun(TrainState& state, EpochGroup& group, const EpochPeer& peer)
      : state_(state), group_(group), peer_(peer) {}

  Result<EpochOutcome> Run() {
    At(kMeeting);
    KEEL_TRY(Meet());
    KEEL_TRY(OpenExchange());
    KEEL_TRY(EvaluateIfDue());
    while (state_.step() < state_.config().steps) {
      KEEL_TRY_ASSIGN(const std::optional<EpochEnd> end, Step());
      if (end) return Outcome(*end);
      KEEL_TRY(EvaluateIfDue());
    }
    // Nobody leaves before everybody is known to have made the last step.
    VoteRecord record = Record({}, {});
    KEEL_TRY(Vote(group_, record, Lanes()));
    return Outcome(EpochEnd::kFinished);
  }

 private:
  int Lanes() const { return static_cast<int>(state_.config().lanes); }
  void At(Phase phase) { peer_.at({static_cast<int64_t>(state_.step()), phase}); }
  EpochOutcome Outcome(EpochEnd end) const { return {end, "", group_.rank() == 0}; }

  Status OpenExchange() {
    const TrainConfig& config = state_.config();
    Exchange::Options options{.lanes = Lanes(), .reduce = config.reduce};
    options.bucket_bytes_max = config.bucket_bytes;
    options.first_bucket_bytes_max = std::min(options.first_bucket_bytes_max, config.bucket_bytes);
    KEEL_TRY_ASSIGN(exchange_, Exchange::Open(state_.parameters(), group_, options));
    return Ok();
  }

  // --- Coming to the same state ---

  Status Meet() {
    KEEL_TRY_ASSIGN(const std::vector<MemberReport> reports, Reports());
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
    if (part == Part::kReady) state_.TakeOwn();
    return CompareStates(plan);
  }

  Result<std::vector<MemberReport>> Reports() {
    const RecordBytes mine = BytesOf(ReportText(state_.Report()));
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
    KEEL_TRY_ASSIGN(const auto texts, Gather(group_, mine, sizes));
    std::vector<MemberReport> reports;
    for (const RecordBytes& bytes : texts) {
      const auto* const begin = reinterpret_cast<const char*>(bytes.data());
      KEEL_TRY_ASSIGN(MemberReport report, ParseReport({begin, bytes.size()}));
      reports.push_back(std::move(report));
    }
    return reports;
  }

  Status MoveState(const ReformPlan& plan, const MemberReport& source, Part part) {
    std::vector<bool> has_it;
    bool any_lacks_it = false;
    for (const Part one : plan.parts) {
      has_it.push_back(one != Part::kReceives);
      any_lacks_it |= one == Part::kReceives;
    }
    if (!any_lacks_it) return Ok();
    if (part == Part::kReceives) state_.BeginReceiving();
    KEEL_TRY(Transfer(group_, state_.registry().FlatAliases(), has_it));
    if (part == Part::kReceives) KEEL_TRY(state_.EndReceiving(source));
    return Ok();
  }

  // All bits of the state, once an epoch.
  Status CompareStates(const ReformPlan& plan) {
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
    return Ok();
  }

  // --- Steps ---

  VoteRecord Record(const EpochPeer::Wishes& wishes, std::vector<double> losses) const {
    VoteRecord record;
    record.step = static_cast<int64_t>(state_.step());
    record.stop = wishes.stop;
    record.join_waiting = wishes.join;
    if (losses.empty()) losses.resize(static_cast<size_t>(Own().count()));
    record.losses = std::move(losses);
    return record;
  }

  LaneRange Own() const { return LanesOf(group_.rank(), group_.size(), Lanes()); }

  Result<std::optional<EpochEnd>> Step() {
    At(kComputing);
    LaneWork work = ComputeLanes(state_, *exchange_);
    if (!work.status.ok()) return Failed(work);
    times_ = work.times;
    StepWatch watch(times_);
    At(kVoting);
    const EpochPeer::Wishes wishes = peer_.wishes();
    VoteRecord record = Record(wishes, std::move(work.losses));
    record.compute_ns = times_.Own().count();
    const uint64_t every = state_.config().digest_every;
    if (every > 0 && state_.step() % every == every - 1) {
      record.parameters = state_.ParametersDigest();
    }
    KEEL_TRY_ASSIGN(const std::vector<VoteRecord> records, Vote(group_, record, Lanes()));
    watch.Add(&StepTimes::vote);
    At(kApplying);
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
    StepReport report;
    report.lane_losses = lane_losses;
    report.data_epoch = state_.samples().DataEpoch(state_.cursor());
    StepWatch watch(times_);
    KEEL_TRY_ASSIGN(report.outcome, state_.Apply(report.lane_losses));
    watch.Add(&StepTimes::optimizer);
    if (!report.outcome.applied && group_.rank() == 0) {
      LogWarn("step-skipped", {{"step", state_.step() - 1}, {"why", report.outcome.note}});
    }
    if (!state_.program().on_step) return Ok();
    report.step = state_.step();
    report.loss = TrainState::MeanLoss(report.lane_losses);
    report.rank = group_.rank();
    report.world = group_.size();
    report.times = std::exchange(times_, {});
    report.compute_ns = std::exchange(compute_ns_, {});
    for (size_t rank = 0; rank < report.compute_ns.size(); ++rank) {
      report.lanes.push_back(LanesOf(static_cast<int>(rank), group_.size(), Lanes()).count());
    }
    const std::string where =
        group_.NameOf(group_.rank()) + ", after step " + std::to_string(report.step);
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
        .at = [this](uint64_t round) {
          // Behind the step that was made last, and before the one to come.
          const int phase = kEvaluating + static_cast<int>(round);
          peer_.at({static_cast<int64_t>(state_.step()) - 1, phase});
        },
        .stop = [this] { return peer_.wishes().stop; }};
    const EvaluationOutcome outcome = Evaluate(state_, group_, peer);
    const std::string who = group_.NameOf(group_.rank());
    if (!outcome.report.ok()) {
      const Error& error = outcome.report.error();
      if (!outcome.users_fault) return error;
      return Error{Code::kInvalid, who + ", " + error.message};
    }
    if (outcome.report->abandoned || !state_.program().on_evaluation) return Ok();
    const std::string where = who + ", after evaluation at step " + std::to_string(state_.step());
    const Result<Status> told =
        Guard(where, [&] { return state_.program().on_evaluation(*outcome.report); });
    if (!told.ok()) return Error{Code::kInvalid, told.error().message};
    return told->ok() ? Ok() : Error{Code::kInvalid, where + ": " + told->error().message};
  }

  // Everybody has the same records, so everybody ends here or nobody does.
  std::optional<EpochEnd> AfterVote(const std::vector<VoteRecord>& records,
                                    const EpochPeer::Wishes& wishes) const {
    if (state_.step() >= state_.config().steps) return std::nullopt;   // no wish counts any more
    bool stop = false;
    bool join = false;
    for (const VoteRecord& record : records) {
      stop |= record.stop;
      join |= record.join_waiting;
    }
    if (stop && wishes.stop) return EpochEnd::kStopped;
    if (stop || join) return EpochEnd::kBoundary;
    return std::nullopt;
  }

  TrainState& state_;
  EpochGroup& group_;
  const EpochPeer& peer_;
  std::unique_ptr<Exchange> exchange_;
  StepTimes times_;                    // of the step under way
  std::vector<int64_t> compute_ns_;    // of its votes
};

}  // namespace

Result<EpochOutcome> RunEpoch(TrainState& state, const EpochGroup::Spec& spec,
                              const CancelToken& broken, const EpochPeer& peer) {
  const auto run = [&]() -> Result<EpochOutcome> {
    KEEL_TRY_ASSIGN(const std::unique_ptr<EpochGroup> group, EpochGroup::Build(spec, broken));
    const std::shared_ptr<void> watch =
        peer.watch([&group](const std::string& reason) { group->Abort(reason); });
    return EpochRun(state, *group, peer).Run();
  };
  Result<EpochOutcome> outcome = run();
  // Lanes of a step that was not made have left their traces in the buffers.
  if (!state.pending()) state.Drop();
  if (outcome.ok() || !IsBreak(outcome.error())) return outcome;
  return EpochOutcome{EpochEnd::kBroken, outcome.error().message, false};
}

}  // namespace keel
