// Carries out the machines' actions, and polls when they want to be polled.
#include "tests/sim/host.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr const char* kJob = "sim";

}  // namespace

SimHost::SimHost(SimHostWorld& world, int number) : world_(world), number_(number) {}

bool SimHost::paused() const { return world_.scheduler().now() < paused_until_; }
bool SimHost::cut_off() const { return world_.scheduler().now() < cut_until_; }

// Work of this life of the supervisor; it waits while the process stands still.
template <class F>
void SimHost::Later(TimePoint when, int busy, F&& work) {
  world_.scheduler().At(when, busy, [this, busy, life = life_, work] {
    if (life != life_ || !alive()) return;
    if (paused()) return Later(paused_until_, busy, work);
    work();
  });
}

void SimHost::Start() {
  ++life_;
  Random random = Random(world_.scenario().seed)
                      .Fork("host " + std::to_string(number_) + " " + std::to_string(life_));
  incarnation_ = RandomId(random, 16);
  const TimePoint now = world_.scheduler().now();
  HostConfig config = world_.scenario().host;
  config.incarnation = incarnation_;
  config.host = "h" + std::to_string(number_);
  config.address = "10.0.0." + std::to_string(number_ + 1);
  config.hosts_store = hosts_store();
  workers_.assign(config.seats, "");
  to_member_.clear();
  exiting_.reset();
  told_ = false;
  paused_until_ = {};
  stall_ = {};
  store_.reset();
  coordinator_store_.reset();
  member_ = std::make_unique<BoardClient>(BoardClientConfig{.job = kJob});
  host_ = std::make_unique<HostMachine>(config, random.Fork("host"), now);
  world_.Trace(config.host + " starts as " + incarnation_.substr(0, 4));
  wake_ = poll_ = coordinate_ = kNever;
  if (hosts_store()) OpenBoard(random);
  Act();
}

void SimHost::OpenBoard(Random& random) {
  world_.board().Restart();
  CoordinatorConfig config{kJob, incarnation_, "10.0.0.1:1", world_.scenario().policy};
  config.poll_interval = 100ms;
  if (world_.scenario().defect == Defect::kNoFence) config.policy.fence_limit = Duration(0);
  config.policy.allow_inexact = world_.scenario().defect == Defect::kAnyNumerics;
  config.close_limit = world_.scenario().host.close_limit;
  epochs_ = 0;
  const auto open_epoch_store = [this](const EpochRecord& epoch) -> Result<EpochStore> {
    ++epochs_;
    return EpochStore{"10.0.0.1", 2, coordinator_->generation() + "/" + epoch.id + "/"};
  };
  coordinator_ =
      std::make_unique<Coordinator>(config, random.Fork("coordinator"), open_epoch_store);
  world_.StoreOpened(coordinator_->generation());
  PlanCoordinator(world_.scheduler().now());
}

void SimHost::Stop() {
  if (hosts_store()) world_.board().CutAll();
  host_.reset();
  member_.reset();
  coordinator_.reset();
}

WorkerPlace SimHost::PlaceOf(int seat) const {
  return {number_, life_, seat, workers_[seat], incarnation_};
}

// --- The loop's thread: Host ---

void SimHost::WorkerSays(const WorkerPlace& place, const WorkerMessage& message) {
  if (place.life != life_) return;
  Later(world_.scheduler().now(), Scheduler::kNobody, [this, place, message] {
    if (workers_[place.seat] != place.worker) return;
    host_->OnWorkerMessage(place.seat, message, world_.scheduler().now());
    Act();
  });
}

void SimHost::WorkerEnded(const WorkerPlace& place, const ExitStatus& status) {
  if (place.life != life_) return;
  Later(world_.scheduler().now(), Scheduler::kNobody, [this, place, status] {
    if (workers_[place.seat] != place.worker) return;
    host_->OnWorkerEnded(place.seat, status, world_.scheduler().now());
    Act();
  });
}

void SimHost::AskToStop(Duration deadline) {
  Later(world_.scheduler().now(), Scheduler::kNobody, [this, deadline] {
    host_->OnStopAsked("SIGTERM", deadline, world_.scheduler().now());
    Act();
  });
}

void SimHost::Act() {
  for (;;) {
    const std::vector<HostAction> actions = host_->TakeActions();
    if (actions.empty()) return PlanWake();
    for (const HostAction& action : actions) {
      Do(action);
      if (!alive()) return;
    }
  }
}

void SimHost::Do(const HostAction& action) {
  const std::string who = "h" + std::to_string(number_) + " ";
  if (const auto* const start = std::get_if<StartWorker>(&action.what)) {
    workers_[start->index] = start->worker;
    if (world_.workers().FailsToStart()) {
      return host_->OnStartFailed(start->index, "no such program", world_.scheduler().now());
    }
    world_.workers().Start(PlaceOf(start->index), start->epoch, start->rank);
  } else if (const auto* const enter = std::get_if<EnterEpoch>(&action.what)) {
    world_.workers().Deliver(PlaceOf(enter->index), *enter);
  } else if (const auto* const send = std::get_if<SendToWorker>(&action.what)) {
    world_.workers().Deliver(PlaceOf(send->index), send->message);
  } else if (const auto* const signal = std::get_if<SignalWorker>(&action.what)) {
    world_.Trace(who + "signal " + std::to_string(signal->signal) + " to seat " +
                 std::to_string(signal->index) + ": " + action.why);
    world_.workers().Signal(PlaceOf(signal->index), signal->signal);
  } else if (const auto* const end = std::get_if<ExitHost>(&action.what)) {
    world_.Trace(who + "exits with " + std::to_string(end->code) + ": " + action.why);
    exiting_ = end->code;
    exit_by_ = world_.scheduler().now() + world_.scenario().host.close_limit;
    PlanPoll(world_.scheduler().now());
  } else {
    if (const auto* const report = std::get_if<ReportBreak>(&action.what)) {
      world_.Trace(who + "reports that epoch " + std::to_string(report->record.epoch) +
                   " broke: " + action.why);
    }
    const auto* const publish = std::get_if<Publish>(&action.what);
    to_member_.push_back(action);
    if (publish == nullptr || publish->hurry) PlanPoll(world_.scheduler().now());
  }
}

void SimHost::PlanWake() {
  const TimePoint wake = host_->NextWake();
  if (wake == kNever || wake == wake_) return;
  wake_ = wake;
  Later(wake, Scheduler::kNobody, [this, wake] {
    if (wake_ != wake) return;
    wake_ = kNever;
    host_->OnTime(world_.scheduler().now());
    const TimePoint next = host_->NextWake();
    if (next <= world_.scheduler().now()) {
      world_.Object("L2: h" + std::to_string(number_) + " wants to be woken without end");
    }
    Act();
  });
}

// --- The store's thread: Member and Coordinator ---

std::unique_ptr<Store> SimHost::Connect(const std::string& name) {
  return std::make_unique<SimStore>(
      world_.board().Connect(name), [this, life = life_] {
        return life == life_ && alive() ? BeforeOperation() : SimStore::Way::kLost;
      },
      [this](std::function<void()> operation) {
        world_.scheduler().At(world_.StoreGoesOn(number_), Scheduler::kNobody, operation);
      });
}

SimStore::Way SimHost::BeforeOperation() {
  if (world_.network().Chance(world_.scenario().interleave)) {
    world_.scheduler().Interleave(3, 50ms);
  }
  if (stall_ > Duration(0)) {
    const Duration length = std::exchange(stall_, Duration(0));
    world_.Trace("h" + std::to_string(number_) + " stands still in the middle of a poll");
    Pause(length);
    world_.scheduler().Interleave(1000000, length);
  }
  if (hosts_store() || world_.CanReachStore(number_)) return SimStore::Way::kThrough;
  const bool late = world_.StoreGoesOn(number_) != kNever && world_.network().Chance(0.5);
  return late ? SimStore::Way::kLate : SimStore::Way::kLost;
}

void SimHost::Look() { PlanPoll(world_.scheduler().now()); }
void SimHost::News() { PlanCoordinator(world_.scheduler().now()); }

void SimHost::PlanPoll(TimePoint when) {
  if (when >= poll_) return;
  poll_ = when;
  Later(when, number_, [this, when] {
    if (poll_ != when) return;
    poll_ = kNever;
    PollMember();
  });
}

void SimHost::GiveToMember() {
  for (const HostAction& action : std::exchange(to_member_, {})) {
    if (std::holds_alternative<Publish>(action.what)) {
      MemberRecord record = host_->record();
      if (world_.scenario().defect == Defect::kPromisesTooEarly) {
        record.outside = record.epoch.number;
      }
      member_->Publish(record);
    }
    if (const auto* const report = std::get_if<ReportBreak>(&action.what)) {
      member_->ReportBreak(report->record);
    }
    if (std::holds_alternative<RegisterAnew>(action.what)) member_->RegisterAnew();
  }
}

void SimHost::PollMember() {
  if (told_) return;
  const TimePoint now = world_.scheduler().now();
  GiveToMember();
  if (!store_) store_ = Connect("member " + std::to_string(number_));
  const bool leaving = exiting_.has_value();
  const auto had_slot = member_->slot();
  const BoardClient::Step step = member_->Poll(*store_, now);
  if (!step.status.ok()) {
    store_.reset();
    world_.Trace("h" + std::to_string(number_) + ": " + step.status.error().message);
  }
  if (step.news) world_.TellCoordinator(number_);
  if (step.beat) host_->OnContact(now);
  if (member_->slot() && member_->slot() != had_slot) world_.PresenceOpened(number_);
  if (leaving) LeaveWhenTold(step.status.ok());
  if (!alive()) return;
  for (const MemberEvent& event : step.events) {
    host_->OnMemberEvent(event, world_.scheduler().now());
    Act();
  }
  // A store that did not answer was waited for.
  Duration lost{0};
  if (!step.status.ok()) lost = Duration(world_.network().Uniform(1'000'000'000));
  PlanPoll(std::max(member_->NextPoll(), now) + lost);
}

// The one that hosts the store stays until the others know.
void SimHost::LeaveWhenTold(bool told) {
  told_ = told_ || told || world_.scheduler().now() >= exit_by_;
  const bool needed = coordinator_ && coordinator_->end() && !coordinator_->done();
  if (told_ && !needed) world_.Exited(number_, *exiting_);
}

void SimHost::PlanCoordinator(TimePoint when) {
  if (!coordinator_ || when >= coordinate_) return;
  coordinate_ = when;
  Later(when, number_, [this, when] {
    if (coordinate_ != when || !coordinator_) return;
    coordinate_ = kNever;
    PollCoordinator();
  });
}

void SimHost::PollCoordinator() {
  const TimePoint now = world_.scheduler().now();
  if (!coordinator_store_) coordinator_store_ = Connect("coordinator");
  const Coordinator::Step step = coordinator_->Poll(*coordinator_store_, now);
  if (!step.status.ok()) {
    coordinator_store_.reset();
    world_.Trace("coordinator: " + step.status.error().message);
  }
  for (const Decision& decision : step.decisions) {
    world_.Trace("coordinator decides " + std::to_string(static_cast<int>(decision.verdict)) +
                 ": " + decision.detail);
  }
  if (step.look) world_.TellMembers();
  if (told_) LeaveWhenTold(true);
  if (!alive()) return;
  if (world_.scenario().defect == Defect::kDeafCoordinator && epochs_ > 0) return;
  PlanCoordinator(std::max(coordinator_->NextPoll(), now + 1ms));
}

// --- What befalls it ---

void SimHost::PresenceOpened(int64_t slot, const std::string& incarnation) {
  if (coordinator_) coordinator_->PresenceOpened(slot, incarnation);
}

void SimHost::PresenceClosed(int64_t slot, const std::string& incarnation) {
  Later(world_.scheduler().now(), number_, [this, slot, incarnation] {
    if (!coordinator_) return;
    coordinator_->PresenceClosed(slot, incarnation, world_.scheduler().now());
    PlanCoordinator(coordinator_->NextPoll());
  });
}

void SimHost::Pause(Duration length) {
  paused_until_ = std::max(paused_until_, world_.scheduler().now() + length);
}

void SimHost::CutOff(Duration length) {
  cut_until_ = std::max(cut_until_, world_.scheduler().now() + length);
}

}  // namespace keel
