// The loop over epochs.
#include "trainer/loop/trainer.h"

#include <cmath>
#include <optional>
#include <variant>

#include "base/hmac.h"
#include "base/log.h"
#include "elastic/protocol/exit_codes.h"
#include "store/tcp_store.h"
#include "store/torch_store.h"
#include "trainer/group/whereabouts.h"
#include "trainer/loop/alone.h"

namespace keel {
namespace {

constexpr Duration kFlushLimit = std::chrono::seconds(10);
constexpr Duration kFiguresPause = std::chrono::milliseconds(500);

// Each epoch has a connection of its own: leftovers on a broken epoch's one cannot reach the next.
Result<EpochGroup::Spec> SpecOf(const EpochMessage& message, const TrainConfig& config,
                                const CancelToken& broken) {
  KEEL_TRY_ASSIGN(const std::unique_ptr<TcpStore> store,
                  TcpStore::Connect({message.address, message.port}, {}, broken));
  EpochGroup::Spec spec;
  spec.store = TorchStoreOf(*store);
  spec.prefix = message.prefix;
  spec.rank = message.rank;
  spec.size = message.world;
  spec.members = message.members;
  spec.host = message.own_host;
  spec.address = message.own_address;
  spec.read_bytes_min = config.read_bytes_min;
  spec.gpu = GpuOf(config);
  if (!message.seal.empty()) {
    KEEL_TRY(HmacReady());
    spec.seal.emplace(message.seal);
  }
  return spec;
}

AtMessage MessageOf(const Whereabouts::Now& now) {
  return {now.position, now.activity, now.lacks};
}

// A failed send is ignored: if the supervisor is gone, the closed link ends this worker.
std::shared_ptr<Whereabouts> WhereaboutsToldOn(WorkerLink* link, bool may_compile) {
  if (link == nullptr) return std::make_shared<Whereabouts>();
  auto told = std::make_shared<Whereabouts>(
      [link](const Whereabouts::Now& now) { (void)link->Send(MessageOf(now)); });
  link->TellWhere([told, may_compile] {
    return MessageOf(may_compile ? told->LookAgain() : told->Look());
  });
  return told;
}

}  // namespace

Trainer::Trainer(TrainState& state, std::string fingerprint, const Parts& parts)
    : state_(state), link_(parts.link), keeping_(parts.keeping), signals_(parts.signals),
      fingerprint_(std::move(fingerprint)),
      whereabouts_(WhereaboutsToldOn(parts.link, state.program().may_compile)) {}

Result<TrainOutcome> Trainer::Run() {
  if (link_ == nullptr) return RunAlone();
  Result<TrainOutcome> outcome = RunSupervised();
  ByeMessage bye{0, "finished"};
  if (!outcome.ok()) {
    bye = {state_.is_unfit() ? kExitShunned : kExitFailed, outcome.error().message};
  } else if (!outcome->refused.empty()) {
    bye = {kExitRefused, outcome->refused};
  } else if (!outcome->finished) {
    bye.message = "stopped";
  }
  // A failed send is ignored: if the supervisor is gone, our exit code tells its parent as much.
  (void)link_->Send(bye);
  (void)link_->Flush(RealClock().Monotonic() + kFlushLimit);
  return outcome;
}

Result<TrainOutcome> Trainer::RunAlone() {
  EpochCallbacks peer;
  peer.fingerprint = fingerprint_;
  peer.evidence = &evidence_;
  peer.watch = [](auto) { return std::shared_ptr<void>(); };
  peer.wishes = [this] {
    return EpochCallbacks::Wishes{.stop = StopWanted(), .save = SaveWanted()};
  };
  EpochOutcome outcome;
  outcome.end = EpochEnd::kBoundary;
  while (outcome.end == EpochEnd::kBoundary) {   // a step is made again
    KEEL_TRY_ASSIGN(outcome, RunEpoch(state_, SpecAlone(state_.config()), CancelToken::Never(),
                                      peer, keeping_));
  }
  if (outcome.end == EpochEnd::kFinished) {
    return TrainOutcome{true, true, outcome.saved_step, "", outcome.not_mirrored};
  }
  if (outcome.end == EpochEnd::kStopped) return TrainOutcome{false, true, outcome.saved_step};
  if (outcome.end == EpochEnd::kRefused) return TrainOutcome{.refused = outcome.reason};
  if (outcome.end == EpochEnd::kDoubted) {
    return TrainOutcome{.saved_step = outcome.saved_step, .refused = outcome.reason};
  }
  return Error{Code::kPeerLost, "training alone broke off: " + outcome.reason};
}

Result<TrainOutcome> Trainer::RunSupervised() {
  KEEL_TRY(link_->Send(HelloMessage{kControlVersion, fingerprint_}));
  KEEL_TRY(link_->Send(ReadyMessage{StepHeld()}));
  for (;;) {
    while (!next_) {
      if (StopWanted()) return LeaveParked();
      const Result<SupervisorMessage> message =
          link_->Receive(kNever, signals_ ? signals_->stop() : CancelToken::Never());
      if (!message.ok() && StopWanted()) continue;
      if (!message.ok()) return message.error();
      if (const auto* refused = std::get_if<RefusedMessage>(&*message)) {
        return Error{Code::kInvalid, "refused: " + refused->reason};
      }
      Note(*message);
    }
    const EpochMessage message = *std::exchange(next_, std::nullopt);
    KEEL_TRY_ASSIGN(const Ended outcome, RunOne(message));
    if (outcome) return *outcome;
  }
}

// The step of the state between two epochs, in the supervisor's terms.
int64_t Trainer::StepHeld() const { return std::max(state_.Report().step, kNoStep); }

Result<Trainer::Ended> Trainer::RunOne(const EpochMessage& message) {
  // After its first epoch, which refused the checkpoints of other jobs, a job goes on from its own
  // ones, even if the command says to begin anew.
  if (keeping_ != nullptr && message.epoch > message.first) {
    keeping_->resume.begun_job = keeping_->checkpointer.config().job;
  }
  whereabouts_->BeginEpoch(std::max<int64_t>(StepHeld(), 0), !state_.whole());
  const auto run = [&]() -> Result<EpochOutcome> {
    const CancelToken broken = link_->BreakToken(message.epoch);
    Result<EpochGroup::Spec> spec = SpecOf(message, state_.config(), broken);
    if (spec.ok()) spec->whereabouts = whereabouts_;
    // The store may be gone for a while; the supervisor decides what to do about that.
    if (!spec.ok()) return EpochOutcome{EpochEnd::kBroken, spec.error().message, false};
    return RunEpoch(state_, *spec, broken, Peer(message), keeping_);
  };
  const Result<EpochOutcome> ended = run();
  TellFigures();
  KEEL_TRY_ASSIGN(const EpochOutcome outcome, ended);
  if (outcome.end == EpochEnd::kRefused) return Ended(TrainOutcome{.refused = outcome.reason});
  if (outcome.end == EpochEnd::kDoubted) {
    if (outcome.saved_step) KEEL_TRY(link_->Send(SavedMessage{StepHeld()}));
    return Ended(TrainOutcome{.saved_step = outcome.saved_step, .refused = outcome.reason});
  }
  if (outcome.end == EpochEnd::kStopped) {
    KEEL_TRY_ASSIGN(const TrainOutcome left, Leave(outcome.saved_step));
    return Ended(left);
  }
  if (outcome.saved_step) KEEL_TRY(link_->Send(SavedMessage{StepHeld()}));
  if (outcome.end == EpochEnd::kFinished) {
    return Ended(TrainOutcome{true, outcome.first_rank, outcome.saved_step, "",
                              outcome.not_mirrored});
  }
  const bool at_boundary = outcome.end == EpochEnd::kBoundary;
  if (!at_boundary) {
    LogInfo("epoch-left", {{"epoch", message.epoch}, {"reason", outcome.reason}});
  }
  KEEL_TRY(link_->Send(ParkedMessage{message.epoch, StepHeld(), at_boundary}));
  return Ended();
}

EpochCallbacks Trainer::Peer(const EpochMessage& message) {
  EpochCallbacks peer;
  peer.watch = [this, epoch = message.epoch](auto abort) -> std::shared_ptr<void> {
    return std::make_shared<WorkerLink::BreakWatch>(link_->WatchBreak(epoch, abort));
  };
  peer.fingerprint = fingerprint_;
  peer.evidence = &evidence_;
  peer.inexact_allowed = message.inexact_allowed;
  peer.epoch = message.epoch;
  peer.wishes = [this, epoch = message.epoch] { return Wishes(epoch); };
  peer.made = [this](uint64_t step, float loss, const StepTimes& times) {
    OnMade(step, loss, times);
  };
  peer.checked = [this](const WorkerChecks& more) {
    figures_.checks.rechecks += more.rechecks;
    figures_.checks.differences += more.differences;
    figures_.checks.slow_steps += more.slow_steps;
    if (more.differences > 0) TellFigures();   // it may be the last thing that this worker says
  };
  peer.evaluated = [this](Duration took) { figures_.evaluating_ns += took.count(); };
  return peer;
}

void Trainer::OnMade(uint64_t step, float loss, const StepTimes& times) {
  const TrainConfig& config = state_.config();
  figures_.step = static_cast<int64_t>(step);
  figures_.loss.reset();
  if (std::isfinite(loss)) figures_.loss = loss;
  ++figures_.steps;
  figures_.samples += static_cast<int64_t>(config.lanes * config.lane_batch);
  step_times_ += times;
  if (keeping_ != nullptr) {
    const auto committed = keeping_->checkpointer.TakeCommitted();
    if (committed) (void)link_->Send(SavedMessage{static_cast<int64_t>(*committed)});
  }
  const TimePoint now = RealClock().Monotonic();
  if (!figures_told_ || now - *figures_told_ >= kFiguresPause) TellFigures();
}

// Failed sends are ignored: figures do not matter to a supervisor that is gone or reads nothing.
void Trainer::TellFigures() {
  if (figures_.steps == 0 && figures_.checks == WorkerChecks()) return;
  figures_told_ = RealClock().Monotonic();
  figures_.parts.clear();
  for (const StepPart& each : kStepParts) {
    figures_.parts.emplace_back(each.name, (step_times_.*each.part).count());
  }
  (void)link_->Send(figures_);
}

EpochCallbacks::Wishes Trainer::Wishes(int64_t epoch) {
  for (;;) {
    const Result<std::optional<SupervisorMessage>> message = link_->TryReceive();
    if (!message.ok() || !*message) break;   // a closed link breaks the epoch by itself
    Note(**message);
  }
  return {.join = join_epoch_ == epoch, .stop = StopWanted(), .save = SaveWanted(),
          .left = TimeLeft()};
}

void Trainer::Note(const SupervisorMessage& message) {
  if (const auto* epoch = std::get_if<EpochMessage>(&message)) next_ = *epoch;
  if (const auto* join = std::get_if<JoinMessage>(&message)) join_epoch_ = join->epoch;
  if (const auto* stop = std::get_if<StopMessage>(&message)) {
    stop_ = true;
    if (stop->deadline_ms) {
      const TimePoint by =
          RealClock().Monotonic() + std::chrono::milliseconds(*stop->deadline_ms);
      stop_by_ = std::min(stop_by_.value_or(by), by);
    }
    const auto left = TimeLeft();
    LogInfo("stop-wanted", {{"reason", stop->reason},
                            {"left", left ? DurationText(*left) : std::string("not told")}});
  }
  if (const auto* save = std::get_if<SaveMessage>(&message)) {
    LogInfo("save-wanted", {{"reason", save->reason}});
    save_ = true;
  }
}

bool Trainer::StopWanted() const {
  return stop_ || (signals_ != nullptr && signals_->stop().cancelled());
}

std::optional<Duration> Trainer::TimeLeft() const {
  if (!stop_by_) return std::nullopt;
  return std::max(*stop_by_ - RealClock().Monotonic(), Duration(0));
}

bool Trainer::IsCommitted() const {
  const Result<bool> answer = keeping_->checkpointer.at_once().IsCommitted(
      {.tick = [this] { whereabouts_->Tick(); }});
  return answer.ok() && *answer;
}

// Whether this worker can save the whole state alone in time. It logs an error if not.
bool Trainer::SaveFits() const {
  const auto needs = keeping_->checkpointer.ExpectedSave(1);
  const StopDecision decision = DecideStopSave({{.left = TimeLeft(), .needs = needs}});
  if (decision.what == StopSave::kSave) return true;
  if (IsCommitted()) return true;
  const auto newest = keeping_->checkpointer.NewestSaved();
  LogError("save-does-not-fit", {{"step", state_.step()},
                                 {"needs", DurationText(decision.needs)},
                                 {"left", DurationText(*decision.left)},
                                 {"instead", "leaving at once"},
                                 {"checkpoint", newest ? std::to_string(*newest) : "none"}});
  return false;
}

bool Trainer::SaveWanted() {
  const bool by_signal = signals_ != nullptr && signals_->TakeSave();
  return std::exchange(save_, false) || by_signal;
}

// A worker that holds the whole state can save all of it without a group. A pending step is dropped
// first, since its lanes have changed the buffers.
Result<TrainOutcome> Trainer::LeaveParked() {
  state_.Drop();
  if (keeping_ == nullptr || !keeping_->checkpointer.saves() || !state_.whole()) {
    return Leave(std::nullopt);
  }
  if (!SaveFits()) return Leave(std::nullopt);
  whereabouts_->At(StepHeld(), Phase::kParked);
  const Status saved = keeping_->checkpointer.SaveAlone(
      {.tick = [this] { whereabouts_->Tick(); }}, stop_by_);
  if (saved.ok()) return Leave(state_.step());
  LogError("save-failed", {{"step", state_.step()}, {"reason", saved.error().message}});
  if (IsCommitted()) return Leave(std::nullopt);
  keeping_->checkpointer.TellUnsaved("these steps are lost, unless another worker holds them");
  return Leave(std::nullopt);
}

Result<TrainOutcome> Trainer::Leave(std::optional<uint64_t> saved_step) {
  // It saves nothing more. Its process may take long to end, and the next first worker waits for
  // the directory before its first step.
  if (saved_step) KEEL_TRY(link_->Send(SavedMessage{static_cast<int64_t>(*saved_step)}));
  if (keeping_ != nullptr) keeping_->checkpointer.LetGo();
  KEEL_TRY(link_->Send(LeavingMessage{StepHeld()}));
  return TrainOutcome{false, false, saved_step};
}

}  // namespace keel
