// Carries out the machines' actions, and polls when they want to be polled.
#include "tests/sim/host.h"

#include "elastic/protocol/exit_codes.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

}  // namespace

std::string PeerOf(int host) { return "10.0.0." + std::to_string(host + 1) + ":1"; }

SimHost::SimHost(SimHostWorld& world, int number)
    : world_(world),
      number_(number),
      clock_(world.scheduler().clock(), world.scenario().DriftOf(number)) {}

TimePoint SimHost::TrueTime() const { return world_.scheduler().now(); }
bool SimHost::paused() const { return TrueTime() < paused_until_; }
bool SimHost::stood_still_lately() const {
  return paused_until_ != TimePoint() && TrueTime() < paused_until_ + 1s;
}
bool SimHost::cut_off() const { return TrueTime() < cut_until_; }

// `when` is a time of this host's clock.
void SimHost::Later(TimePoint when, int busy, std::function<void()> work) {
  AtTrueTime(clock_.TrueTime(when), busy, std::move(work));
}

// Work of this life of the supervisor; it waits while the process stands still.
void SimHost::AtTrueTime(TimePoint when, int busy, std::function<void()> work) {
  world_.scheduler().At(when, busy, [this, busy, life = life_, work = std::move(work)] {
    if (life != life_ || !alive()) return;
    if (paused()) return AtTrueTime(paused_until_, busy, work);
    work();
  });
}

void SimHost::Start() {
  ++life_;
  Random random = Random(world_.scenario().seed)
                      .Fork("host " + std::to_string(number_) + " " + std::to_string(life_));
  incarnation_ = RandomId(random, 16);
  const TimePoint now = Now();
  HostConfig config = world_.scenario().host;
  config.incarnation = incarnation_;
  config.host = "h" + std::to_string(number_);
  config.address = "10.0.0." + std::to_string(number_ + 1);
  workers_.assign(config.seats, "");
  checked_.clear();
  to_member_.clear();
  exiting_.reset();
  told_ = false;
  paused_until_ = {};
  stall_ = {};
  opened_term_ = 0;
  store_.reset();
  coordinator_store_.reset();
  sealer_.emplace(SimSeal(), std::set<std::string>{kKeeperKey});
  BoardClientConfig member{.job = kSimJob};
  if (world_.scenario().sealed) {
    member.vouches = [this](const std::string&, const std::string& generation, Duration) {
      return world_.Vouches(number_, generation);
    };
  }
  member_ = std::make_unique<BoardClient>(std::move(member));
  host_ = std::make_unique<HostMachine>(config, random.Fork("host"), now);
  world_.Trace(config.host + " starts as " + incarnation_.substr(0, 4));
  wake_ = poll_ = coordinate_ = kNever;
  health_.emplace(random.Fork("health"));
  random_.emplace(std::move(random));
  powered_off_ = false;
  place_.reset();
  reached_.reset();
  is_reached_ = false;
  epoch_ = 0;
  heirs_.clear();
  lost_at_.reset();
  refused_ = false;
  scout_at_ = heard_ = now;
  endpoint_ = kept_ = "";
  coordinator_.reset();
  hand_.reset();
  lease_poll_ = kNever;
  link_ = LinkView();
  newest_epoch_.clear();
  if (world_.scenario().has_lease) {
    lease_ = std::make_unique<MemoryLease>(world_.lease_place(number_), incarnation_,
                                           [this] { return BeforeLease(); });
    hand_ = std::make_unique<LeaseHand>(
        *lease_, clock_, incarnation_,
        [this](const std::string& address) {
          return address.ends_with(":1") ? world_.LookAtPeer(number_, address)
                                         : world_.Look(number_, address);
        });
    PlanLease(now);
  }
  if (number_ == 0) {
    OpenBoard(1, 0, "");
    endpoint_ = kept_;
  }
  Act();
}

void SimHost::Stop(bool powered_off) {
  powered_off_ = powered_off;
  host_.reset();
  member_.reset();
  coordinator_.reset();
}

WorkerPlace SimHost::PlaceOf(int seat) const {
  return {number_, life_, seat, workers_[seat], incarnation_};
}

// --- The loop's thread: Host ---

void SimHost::OfWorker(const WorkerPlace& place, std::function<void()> hear) {
  if (place.life != life_) return;
  Later(Now(), Scheduler::kNobody, [this, place, hear = std::move(hear)] {
    if (workers_[place.seat] != place.worker) return;
    hear();
    Act();
  });
}

void SimHost::WorkerSays(const WorkerPlace& place, const WorkerMessage& message) {
  OfWorker(place, [=, this] { host_->OnWorkerMessage(place.seat, message, Now()); });
}

void SimHost::WorkerEnding(const WorkerPlace& place, const ExitStatus& status) {
  OfWorker(place, [=, this] { host_->OnWorkerEnding(place.seat, status, Now()); });
}

void SimHost::WorkerEnded(const WorkerPlace& place, const ExitStatus& status) {
  OfWorker(place, [=, this] { host_->OnWorkerEnded(place.seat, status, Now()); });
}

void SimHost::AskToStop(Duration deadline) {
  Later(Now(), Scheduler::kNobody, [this, deadline] {
    host_->OnStopAsked("SIGTERM", deadline, Now());
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
    if (world_.scenario().checks_health) return CheckHealth(*start);
    StartNow(*start);
  } else if (const auto* const enter = std::get_if<EnterEpoch>(&action.what)) {
    world_.workers().Deliver(PlaceOf(enter->index), *enter);
  } else if (const auto* const send = std::get_if<SendToWorker>(&action.what)) {
    world_.workers().Deliver(PlaceOf(send->index), send->message);
  } else if (const auto* const signal = std::get_if<SignalWorker>(&action.what)) {
    world_.Trace(who + "signal " + std::to_string(signal->signal) + " to seat " +
                 std::to_string(signal->index) + ": " + action.why);
    if (checked_.erase(signal->index) > 0) return host_->OnNotStarted(signal->index, Now());
    world_.workers().Signal(PlaceOf(signal->index), signal->signal);
  } else if (const auto* const end = std::get_if<ExitHost>(&action.what)) {
    world_.Trace(who + "exits with " + std::to_string(end->code) + ": " + action.why);
    exiting_ = end->code;
    exit_by_ = Now() + world_.scenario().host.close_limit;
    hand_over_by_ = Now() + kHandOverLimit;
    PlanPoll(Now());
  } else {
    if (const auto* const report = std::get_if<ReportBreak>(&action.what)) {
      world_.Trace(who + "reports that epoch " + std::to_string(report->record.epoch) +
                   " broke: " + action.why);
    }
    const auto* const publish = std::get_if<Publish>(&action.what);
    to_member_.push_back(action);
    if (publish == nullptr || publish->hurry) PlanPoll(Now());
  }
}

void SimHost::StartNow(const StartWorker& start) {
  if (world_.workers().FailsToStart()) {
    return host_->OnStartFailed(start.index, "no such program", Now());
  }
  world_.workers().Start(PlaceOf(start.index), start.epoch, start.rank);
}

void SimHost::CheckHealth(const StartWorker& start) {
  checked_[start.index] = start.worker;
  const bool is_fit = !health_->Chance(world_.scenario().unfit);
  const auto length = std::chrono::milliseconds(health_->Uniform(2000));
  Later(Now() + length, Scheduler::kNobody, [this, start, is_fit] {
    const auto waiting = checked_.find(start.index);
    if (waiting == checked_.end() || waiting->second != start.worker) return;
    if (is_fit) {
      checked_.erase(waiting);
      host_->OnFit(start.index, Now());
      StartNow(start);
    } else {
      host_->OnUnfit("its health check says so", kExitShunned, Now());
    }
    Act();
  });
}

void SimHost::PlanWake() {
  const TimePoint wake = host_->NextWake();
  if (wake == kNever || wake == wake_) return;
  wake_ = wake;
  Later(wake, Scheduler::kNobody, [this, wake] {
    if (wake_ != wake) return;
    wake_ = kNever;
    host_->OnTime(Now());
    const TimePoint next = host_->NextWake();
    if (next <= Now()) {
      world_.Object("L2: h" + std::to_string(number_) + " wants to be woken without end");
    }
    Act();
  });
}

// --- The board's threads: BoardClient and Coordinator ---

std::unique_ptr<Store> SimHost::Connect(const std::string& name, const std::string& address) {
  auto store = std::make_unique<SimStore>(
      world_.BoardAt(address).Connect(name), [this, address, life = life_] {
        return life == life_ && alive() ? BeforeOperation(address) : SimStore::Way::kLost;
      },
      [this, address](std::function<void()> operation) {
        world_.scheduler().At(world_.GoesOn(number_, address), Scheduler::kNobody, operation);
      });
  if (!world_.scenario().sealed || Errs(Defect::kBelievesAnybody)) return store;
  return sealer_->Sealed(std::move(store), address);
}

SimStore::Way SimHost::BeforeOperation(const std::string& address) {
  if (world_.network().Chance(world_.scenario().interleave)) {
    world_.scheduler().Interleave(3, 50ms);
  }
  if (stall_ > Duration(0)) {
    const Duration length = std::exchange(stall_, Duration(0));
    world_.Trace("h" + std::to_string(number_) + " stands still in the middle of a poll");
    Pause(length);
    world_.scheduler().Interleave(1000000, length);
  }
  const TimePoint goes_on = world_.GoesOn(number_, address);
  if (goes_on == kNever && world_.Look(number_, address) == Reached::kListener) {
    return SimStore::Way::kThrough;
  }
  if (world_.TakesUnanswered(number_, address)) return SimStore::Way::kUnanswered;
  const bool late = goes_on != kNever && world_.network().Chance(0.5);
  return late ? SimStore::Way::kLate : SimStore::Way::kLost;
}

void SimHost::Look() { PlanPoll(Now()); }
void SimHost::News(int64_t slot) {
  if (coordinator_) coordinator_->NoteNews(slot);
  PlanCoordinator(Now());
}

void SimHost::PlanPoll(TimePoint when) {
  if (when >= poll_) return;
  poll_ = when;
  Later(when, number_, [this, when] {
    if (poll_ != when) return;
    poll_ = kNever;
    PollMember();
  });
}

// The board gets the record as it is now, however often it was to be published since the last poll.
void SimHost::GiveToMember() {
  bool publishes = false;
  for (const HostAction& action : std::exchange(to_member_, {})) {
    publishes |= std::holds_alternative<Publish>(action.what);
    if (const auto* const report = std::get_if<ReportBreak>(&action.what)) {
      member_->ReportBreak(report->record);
    }
    if (std::holds_alternative<RegisterAnew>(action.what)) member_->RegisterAnew();
  }
  if (!publishes) return;
  member_->Publish(RecordToPublish(), std::make_shared<CountedEpochList>(CountedToPublish()));
}

MemberRecord SimHost::RecordToPublish() const {
  MemberRecord record = host_->record();
  record.peer = PeerOf(number_);
  EpochsSeen& seen = record.seen;
  if (Errs(Defect::kPromisesTooEarly)) record.outside = record.epoch.number;
  if (Errs(Defect::kLeaseIsEnough)) seen.shared = seen.tried.empty() ? seen.met : seen.tried.back();
  if (Errs(Defect::kForgetsRestarts) && place_ && place_->term > 1) {
    record.epoch.restarts = record.epoch.restarts_recent = 0;
    record.epoch.deaths = record.deaths;
  }
  return record;
}

std::vector<CountedEpoch> SimHost::CountedToPublish() const {
  std::vector<CountedEpoch> counted = host_->counted();
  if (!Errs(Defect::kDeadNotCounted)) return counted;
  for (CountedEpoch& epoch : counted) {
    std::erase_if(epoch.hosts, [&](const auto& host) { return world_.IsGone(host); });
  }
  return counted;
}

void SimHost::PollMember() {
  if (told_ && !coordinator_) return;
  const TimePoint now = Now();
  GiveToMember();
  if (!store_ && !FindBoard(now)) {
    if (!alive()) return;
    if (exiting_) LeaveWhenTold(false);
    if (alive()) PlanPoll(now + 50ms + Duration(world_.network().Uniform(150'000'000)));
    return;
  }
  const bool leaving = exiting_.has_value();
  const BoardClient::Step step = member_->Poll(*store_, now);
  bool is_registered = false;
  if (!step.status.ok()) {
    store_.reset();
    world_.Trace("h" + std::to_string(number_) + ": " + step.status.error().message);
  }
  if (step.news) world_.TellCoordinator(number_, coordinator());
  for (const MemberEvent& event : step.events) {
    is_registered |= std::holds_alternative<Registered>(event);
    if (const auto* const seen = std::get_if<EpochSeen>(&event)) {
      newest_epoch_ = seen->epoch.id;
      world_.EpochRead(number_, seen->epoch);
    }
    if (const auto* const seen = std::get_if<SuccessionSeen>(&event)) OnSuccession(seen->record);
    if (const auto* const seen = std::get_if<ShunnedSeen>(&event)) shunned_ = seen->record;
    if (std::holds_alternative<StopSeen>(event)) world_.ToldOfEnd(number_, "that the job stops");
    if (std::holds_alternative<EndSeen>(event)) world_.ToldOfEnd(number_, "that the job has ended");
    host_->OnMemberEvent(event, Now());
    Act();
    if (!alive()) return;
  }
  if (is_registered) world_.PresenceOpened(number_, coordinator());
  if (step.beat) {
    host_->OnContact(now);
    heard_ = now;
    lost_at_.reset();
    refused_ = false;
  }
  if (step.status.ok()) {
    epoch_ = std::max(epoch_, member_->newest_epoch());
    if (place_) place_->epoch = std::max(place_->epoch, member_->newest_epoch());
    if (is_reached_) reached_ = place_;
  }
  PlanLease(now);
  if (leaving) {
    const bool is_there = member_->settled() || member_->is_unknown();
    LeaveWhenTold(step.status.ok() && store_ != nullptr && is_there);
  }
  if (!alive()) return;
  CloseIfNeedless(now);
  Scout(now);
  if (!store_ && step.status.ok()) return PlanPoll(now + 1ms);   // the board is elsewhere
  // A store that did not answer was waited for.
  Duration lost{0};
  if (!step.status.ok()) lost = Duration(world_.network().Uniform(1'000'000'000));
  PlanPoll(std::max(member_->NextPoll(), now) + lost);
}

// A coordinator stays until the others know the end, or another host has taken its role.
void SimHost::LeaveWhenTold(bool told) {
  const TimePoint now = Now();
  told_ = told_ || told || now >= exit_by_;
  const bool follows_own = place_ && place_->by == incarnation_;
  const bool needed = coordinator_ && follows_own && (coordinator_->end() ? !coordinator_->done()
                                                           : coordinator_->is_needed() &&
                                                                 now < hand_over_by_);
  if (told_ && !needed) world_.Exited(number_, *exiting_);
}

// --- What befalls it ---

void SimHost::PresenceOpened(int64_t slot, const std::string& incarnation) {
  if (coordinator_) coordinator_->PresenceOpened(slot, incarnation);
}

void SimHost::PresenceClosed(int64_t slot, const std::string& incarnation) {
  Later(Now(), number_, [this, slot, incarnation] {
    if (!coordinator_) return;
    coordinator_->PresenceClosed(slot, incarnation, Now());
    PlanCoordinator(coordinator_->NextPoll());
  });
}

void SimHost::Pause(Duration length) {
  paused_until_ = std::max(paused_until_, TrueTime() + length);
}

void SimHost::LoseLease(Duration length) {
  lease_away_until_ = std::max(lease_away_until_, TrueTime() + length);
}

void SimHost::CutOff(Duration length) {
  cut_until_ = std::max(cut_until_, TrueTime() + length);
}

}  // namespace keel
