// The loop over epochs.
#include "trainer/trainer.h"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <optional>
#include <variant>

#include "base/log.h"
#include "store/tcp_store.h"
#include "store/torch_store.h"

namespace keel {
namespace {

constexpr Duration kFlushLimit = std::chrono::seconds(10);

// A connection of the epoch's own: what is in flight on a broken epoch's is no concern of the next.
Result<EpochGroup::Spec> SpecOf(const EpochMessage& message) {
  KEEL_TRY_ASSIGN(const std::unique_ptr<TcpStore> store,
                  TcpStore::Connect({message.address, message.port}, {}));
  EpochGroup::Spec spec;
  spec.store = TorchStoreOf(*store);
  spec.prefix = message.prefix;
  spec.rank = message.rank;
  spec.size = message.world;
  spec.members = message.members;
  return spec;
}

}  // namespace

Result<TrainOutcome> Trainer::Run() {
  if (link_ == nullptr) return RunAlone();
  Result<TrainOutcome> outcome = RunSupervised();
  ByeMessage bye{0, "finished"};
  if (!outcome.ok()) {
    bye = {1, outcome.error().message};
  } else if (!outcome->finished) {
    bye.message = "stopped";
  }
  // A supervisor that is gone hears nothing; then this program's exit says it all.
  (void)link_->Send(bye);
  (void)link_->Flush(RealClock().Monotonic() + kFlushLimit);
  return outcome;
}

Result<TrainOutcome> Trainer::RunAlone() {
  EpochGroup::Spec spec;
  spec.store = c10::make_intrusive<c10d::HashStore>();
  spec.prefix = "alone";
  EpochPeer peer;
  peer.watch = [](auto) { return std::shared_ptr<void>(); };
  peer.at = [](Position) {};
  peer.wishes = [] { return EpochPeer::Wishes{}; };
  KEEL_TRY_ASSIGN(const EpochOutcome outcome,
                  RunEpoch(state_, spec, CancelToken::Never(), peer));
  if (outcome.end == EpochEnd::kFinished) return TrainOutcome{true, true};
  return Error{Code::kPeerLost, "training alone broke off: " + outcome.reason};
}

Result<TrainOutcome> Trainer::RunSupervised() {
  KEEL_TRY(link_->Send(HelloMessage{kControlVersion, fingerprint_}));
  KEEL_TRY(link_->Send(ReadyMessage{StepHeld()}));
  for (;;) {
    while (!next_) {
      KEEL_TRY_ASSIGN(const SupervisorMessage message, link_->Receive(kNever));
      if (const auto* refused = std::get_if<RefusedMessage>(&message)) {
        return Error{Code::kInvalid, "refused: " + refused->reason};
      }
      Note(message);
      if (stop_) return Leave();
    }
    const EpochMessage message = *std::exchange(next_, std::nullopt);
    KEEL_TRY_ASSIGN(const Ended outcome, RunOne(message));
    if (outcome) return *outcome;
  }
}

// The state between two epochs, as the supervisor knows steps.
int64_t Trainer::StepHeld() const { return std::max(state_.Report().step, kNoStep); }

Result<Trainer::Ended> Trainer::RunOne(const EpochMessage& message) {
  KEEL_TRY(link_->Send(AtMessage{{StepHeld(), 0}}));
  const auto run = [&]() -> Result<EpochOutcome> {
    Result<EpochGroup::Spec> spec = SpecOf(message);
    // The store may be gone for a while; the supervisor decides what becomes of that.
    if (!spec.ok()) return EpochOutcome{EpochEnd::kBroken, spec.error().message, false};
    return RunEpoch(state_, *spec, link_->BreakToken(message.epoch), Peer(message));
  };
  KEEL_TRY_ASSIGN(const EpochOutcome outcome, run());
  if (outcome.end == EpochEnd::kFinished) return Ended(TrainOutcome{true, outcome.first_rank});
  if (outcome.end == EpochEnd::kStopped) {
    KEEL_TRY_ASSIGN(const TrainOutcome left, Leave());
    return Ended(left);
  }
  const bool at_boundary = outcome.end == EpochEnd::kBoundary;
  if (!at_boundary) {
    LogInfo("epoch-left", {{"epoch", message.epoch}, {"reason", outcome.reason}});
  }
  KEEL_TRY(link_->Send(ParkedMessage{message.epoch, StepHeld(), at_boundary}));
  return Ended();
}

EpochPeer Trainer::Peer(const EpochMessage& message) {
  EpochPeer peer;
  peer.watch = [this, epoch = message.epoch](auto abort) -> std::shared_ptr<void> {
    return std::make_shared<WorkerLink::BreakWatch>(link_->WatchBreak(epoch, abort));
  };
  peer.at = [this](Position position) { (void)link_->Send(AtMessage{position}); };
  peer.wishes = [this, epoch = message.epoch] { return Wishes(epoch); };
  return peer;
}

EpochPeer::Wishes Trainer::Wishes(int64_t epoch) {
  for (;;) {
    const Result<std::optional<SupervisorMessage>> message = link_->TryReceive();
    if (!message.ok() || !*message) break;   // a closed link breaks the epoch by itself
    Note(**message);
  }
  return {.join = join_epoch_ == epoch, .stop = stop_};
}

void Trainer::Note(const SupervisorMessage& message) {
  if (const auto* epoch = std::get_if<EpochMessage>(&message)) next_ = *epoch;
  if (const auto* join = std::get_if<JoinMessage>(&message)) join_epoch_ = join->epoch;
  if (const auto* stop = std::get_if<StopMessage>(&message)) {
    LogInfo("stop-wanted", {{"reason", stop->reason}});
    stop_ = true;
  }
}

Result<TrainOutcome> Trainer::Leave() {
  KEEL_TRY(link_->Send(LeavingMessage{StepHeld()}));
  return TrainOutcome{false, false};
}

}  // namespace keel
