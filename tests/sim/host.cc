// Carries out the machines' actions, and polls when they want to be polled.
#include "tests/sim/host.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr const char* kJob = "sim";

std::string PeerOf(int host) { return "10.0.0." + std::to_string(host + 1) + ":1"; }

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
  random_.emplace(std::move(random));
  powered_off_ = false;
  place_.reset();
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
        *lease_, world_.clock(), incarnation_,
        [this](const std::string& address) {
          return address.ends_with(":1") ? world_.LookAtPeer(number_, address)
                                         : world_.Look(number_, address);
        });
    PlanLease(now);
  }
  if (number_ == 0) {
    OpenBoard(1, "");
    endpoint_ = kept_;
  }
  Act();
}

void SimHost::OpenBoard(int64_t term, const std::string& handed_over_by) {
  kept_ = world_.OpenBoard(number_);
  coordinator_store_.reset();
  CoordinatorConfig config;
  config.job = kJob;
  config.incarnation = incarnation_;
  config.presence = PeerOf(number_);
  config.address = kept_;
  config.term = term;
  config.epoch = epoch_;
  config.handed_over_by = handed_over_by;
  config.is_dead = [this](const std::string& peer) { return world_.IsRefused(number_, peer); };
  config.policy = world_.scenario().policy;
  if (hand_) {
    config.lease = [this] { return BelievedLease(); };
    config.claim = [this](const LinkRecord& link, int64_t after) {
      const Status claimed = hand_->Claim(link, after);
      world_.Trace("h" + std::to_string(number_) + " claims " + std::to_string(after + 1) +
                   " for epoch " + std::to_string(link.place.epoch) + ": " +
                   (claimed.ok() ? "ok" : claimed.error().message));
      return claimed;
    };
  }
  config.poll_interval = 100ms;
  if (world_.scenario().defect == Defect::kNoQuorum) config.policy.needs_quorum = false;
  if (world_.scenario().defect == Defect::kNoFence) config.policy.fence_limit = Duration(0);
  config.policy.allow_inexact = world_.scenario().defect == Defect::kAnyNumerics;
  config.close_limit = world_.scenario().host.close_limit;
  epochs_ = 0;
  const auto open_epoch_store = [this](const EpochRecord& epoch) -> Result<EpochStore> {
    ++epochs_;
    return EpochStore{"10.0.0.1", 2, coordinator_->generation() + "/" + epoch.id + "/"};
  };
  coordinator_ = std::make_unique<Coordinator>(
      config, random_->Fork("coordinator " + std::to_string(term)), open_epoch_store);
  world_.StoreOpened(coordinator_->generation());
  world_.Trace("h" + std::to_string(number_) + " opens a board of term " + std::to_string(term) +
               " at " + kept_);
  coordinate_ = kNever;
  PlanCoordinator(world_.scheduler().now());
}

std::optional<BoardPlace> SimHost::own_place() const {
  return coordinator_ ? std::optional(coordinator_->place()) : std::nullopt;
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
    hand_over_by_ = world_.scheduler().now() + kHandOverLimit;
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

// --- The board's threads: BoardClient and Coordinator ---

std::unique_ptr<Store> SimHost::Connect(const std::string& name, const std::string& address) {
  return std::make_unique<SimStore>(
      world_.BoardAt(address).Connect(name), [this, address, life = life_] {
        return life == life_ && alive() ? BeforeOperation(address) : SimStore::Way::kLost;
      },
      [this, address](std::function<void()> operation) {
        world_.scheduler().At(world_.GoesOn(number_, address), Scheduler::kNobody, operation);
      });
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
  const bool late = goes_on != kNever && world_.network().Chance(0.5);
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
  MemberRecord record = host_->record();
  if (world_.scenario().defect == Defect::kPromisesTooEarly) record.outside = record.epoch.number;
  if (world_.scenario().defect == Defect::kLeaseIsEnough) {
    record.seen.shared = record.seen.tried.empty() ? record.seen.met : record.seen.tried.back();
  }
  record.peer = PeerOf(number_);
  member_->Publish(record, host_->counted());
}

void SimHost::PollMember() {
  if (told_ && !coordinator_) return;
  const TimePoint now = world_.scheduler().now();
  GiveToMember();
  if (!store_ && !FindBoard(now)) {
    if (!alive()) return;
    if (exiting_) LeaveWhenTold(false);
    if (alive()) PlanPoll(now + 50ms + Duration(world_.network().Uniform(150'000'000)));
    return;
  }
  const bool leaving = exiting_.has_value();
  const auto had_slot = member_->slot();
  const BoardClient::Step step = member_->Poll(*store_, now);
  if (!step.status.ok()) {
    store_.reset();
    world_.Trace("h" + std::to_string(number_) + ": " + step.status.error().message);
  }
  if (step.news) world_.TellCoordinator(number_, coordinator());
  for (const MemberEvent& event : step.events) {
    if (const auto* const seen = std::get_if<EpochSeen>(&event)) newest_epoch_ = seen->epoch.id;
    if (const auto* const seen = std::get_if<SuccessionSeen>(&event)) OnSuccession(seen->record);
    host_->OnMemberEvent(event, world_.scheduler().now());
    Act();
    if (!alive()) return;
  }
  if (member_->slot() && member_->slot() != had_slot) {
    world_.PresenceOpened(number_, coordinator());
  }
  if (step.beat) {
    host_->OnContact(now);
    heard_ = now;
    lost_at_.reset();
    refused_ = false;
  }
  if (step.status.ok()) {
    epoch_ = std::max(epoch_, member_->newest_epoch());
    if (place_) place_->epoch = std::max(place_->epoch, member_->newest_epoch());
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
  const TimePoint now = world_.scheduler().now();
  told_ = told_ || told || now >= exit_by_;
  const bool follows_own = place_ && place_->by == incarnation_;
  const bool needed = coordinator_ && follows_own && (coordinator_->end() ? !coordinator_->done()
                                                           : coordinator_->is_needed() &&
                                                                 now < hand_over_by_);
  if (told_ && !needed) world_.Exited(number_, *exiting_);
}

// --- Where the board is: BoardFinder in earnest ---

std::optional<PeerSight> SimHost::Sight() const {
  if (!place_ || !is_reached_) return std::nullopt;
  return PeerSight{*place_, world_.scheduler().now() - heard_};
}

void SimHost::Offer(const BoardPlace& place) {
  if (!coordinator_) return;
  coordinator_->NoteOffer(place);
  PlanCoordinator(world_.scheduler().now());
}

void SimHost::Follow(const BoardPlace& place) {
  world_.Trace("h" + std::to_string(number_) + " follows " + PlaceText(place));
  place_ = place;
  heard_ = world_.scheduler().now();
  is_reached_ = false;
  lost_at_.reset();
  refused_ = false;
  store_ = Connect("member " + std::to_string(number_), place.address);
}

// Whether there is a board to talk to, which may not answer.
bool SimHost::FindBoard(TimePoint now) {
  if (!place_ || (!is_reached_ && heirs_.empty() && lost_at_)) {
    std::optional<BoardPlace> best;
    for (const PeerSight& sight : world_.AskOthers(number_)) {
      if (sight.heard_ago >= kHeardLately) continue;
      if (!best || IsAhead(sight.place, *best)) best = sight.place;
    }
    const std::string endpoint = world_.EndpointFor(number_);
    if (!best && endpoint.empty()) return false;
    Follow(best.value_or(BoardPlace{0, 0, endpoint, ""}));
    return true;
  }
  const Reached reached = world_.Look(number_, place_->address);
  const bool stands_still = world_.GoesOn(number_, place_->address) != kNever;
  if (reached == Reached::kListener && !stands_still) {
    store_ = Connect("member " + std::to_string(number_), place_->address);
    return true;
  }
  SearchBoard(now, reached == Reached::kRefused);
  return store_ != nullptr;
}

void SimHost::SearchBoard(TimePoint now, bool refused) {
  if (!lost_at_) lost_at_ = now;
  refused_ |= refused;
  if (is_reached_) {
    const bool lies = world_.scenario().defect == Defect::kSilenceIsDeath;
    host_->OnBoardLost(place_->by, lies ? 0 : member_->promised(), refused_ || lies, now);
    Act();
    if (!alive()) return;
  }
  FollowView view{incarnation_, *place_, heirs_, *lost_at_, heard_, refused_,
                  world_.scenario().policy.beat_limit, own_place(), world_.AskOthers(number_)};
  view.lost.epoch = std::max(view.lost.epoch, epoch_);
  const FollowStep step = DecideFollow(view, now);
  if (step.verdict == FollowStep::Verdict::kFollow) return Follow(step.place);
  if (world_.scenario().one_coordinator) return;
  const bool is_new = !coordinator_ || coordinator_->place().term < step.place.term;
  if (step.verdict == FollowStep::Verdict::kOpen && is_new) OpenBoard(step.place.term, "");
}

void SimHost::OnSuccession(const SuccessionRecord& record) {
  const int64_t epoch = place_->epoch;
  place_ = BoardPlace{record.term, epoch, record.address, record.coordinator};
  heirs_ = record.heirs;
  heard_ = world_.scheduler().now();
  is_reached_ = true;
  if (record.moved) {
    is_reached_ = false;
    place_ = *record.moved;
    store_.reset();
    told_ = false;
    if (exiting_) exit_by_ = world_.scheduler().now() + world_.scenario().host.close_limit;
    return;
  }
  if (record.chosen != incarnation_) return;
  if (!coordinator_ || coordinator_->place().term <= record.term) {
    OpenBoard(record.term + 1, record.coordinator);
  }
  member_->Offer(coordinator_->place());
}

// A board that this host opened, and to which nobody came.
void SimHost::CloseIfNeedless(TimePoint now) {
  const bool follows_own = place_ && place_->by == incarnation_;
  if (!coordinator_ || follows_own || !is_reached_) {
    elsewhere_since_.reset();
    return;
  }
  if (!elsewhere_since_) elsewhere_since_ = now;
  if (now - *elsewhere_since_ < kBeatLimit || coordinator_->is_needed()) return;
  coordinator_.reset();
  world_.CloseBoard(kept_, Duration(0));
}

void SimHost::Scout(TimePoint now) {
  const bool follows_own = place_ && is_reached_ && place_->by == incarnation_;
  if (!coordinator_ || now < scout_at_ || !follows_own) return;
  scout_at_ = now + 1s;
  const BoardPlace own = coordinator_->place();
  if (own.term == 1 && own.epoch > 0 && coordinator_->PeersOutOfReach(now).empty()) return;
  std::optional<BoardPlace> ahead;
  for (const PeerSight& sight : world_.AskOthers(number_)) {
    const bool is_better = IsAhead(sight.place, ahead.value_or(own)) &&
                           !IsSameBoard(sight.place, own) && sight.heard_ago < kHeardLately;
    if (is_better) ahead = sight.place;
  }
  if (ahead) return Offer(*ahead);
  world_.TellBehind(number_, own);
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
  if (!coordinator_store_) {
    coordinator_store_ = Connect("coordinator " + std::to_string(number_), kept_);
  }
  const Coordinator::Step step = coordinator_->Poll(*coordinator_store_, now);
  if (!step.status.ok()) {
    coordinator_store_.reset();
    world_.Trace("coordinator: " + step.status.error().message);
  }
  for (const Decision& decision : step.decisions) {
    world_.Trace("coordinator decides " + std::to_string(static_cast<int>(decision.verdict)) +
                 ": " + decision.detail);
  }
  if (step.look) world_.TellMembers(number_);
  if (coordinator_->moved()) {
    world_.Trace("h" + std::to_string(number_) + " leaves its board for " +
                 PlaceText(*coordinator_->moved()));
    coordinator_.reset();
    world_.CloseBoard(kept_, 1s);   // those who have not read it yet have a moment
    if (exiting_) exit_by_ = now + world_.scenario().host.close_limit;
    told_ = false;   // the last word belongs on the next board
    PlanPoll(now);
    return;
  }
  if (told_) LeaveWhenTold(true);
  if (!alive()) return;
  if (world_.scenario().defect == Defect::kDeafCoordinator && epochs_ > 0) return;
  PlanCoordinator(std::max(coordinator_->NextPoll(), now + 1ms));
}

// --- The job's lease: LeaseThread in earnest ---

MemoryLease::Way SimHost::BeforeLease() {
  const Scenario& scenario = world_.scenario();
  const bool is_cut = cut_off() && scenario.lease_needs_link;
  if (is_cut || world_.scheduler().now() < lease_away_until_) return MemoryLease::Way::kAway;
  if (world_.network().Chance(scenario.lease_loss)) return MemoryLease::Way::kLost;
  const bool is_old = world_.network().Chance(scenario.lease_age);
  return is_old ? MemoryLease::Way::kOld : MemoryLease::Way::kThrough;
}

void SimHost::PlanLease(TimePoint when) {
  if (!hand_ || when >= lease_poll_) return;
  lease_poll_ = when;
  Later(when, Scheduler::kNobody, [this, when] {
    if (lease_poll_ != when) return;
    lease_poll_ = kNever;
    PollLease();
  });
}

void SimHost::PollLease() {
  LeaseTask task;
  const bool follows_own = place_ && place_->by == incarnation_;
  if (coordinator_ && follows_own) task.own = coordinator_->Link();
  task.looks = lost_at_ || !is_reached_ || newest_epoch_ != link_.link.epoch;
  const TimePoint next = hand_->Poll(task);
  const LinkView seen = hand_->View();
  if (seen != link_) {
    link_ = seen;
    if (coordinator_) coordinator_->NoteLease();
    host_->OnMemberEvent(LinkSeen{seen.link.epoch}, world_.scheduler().now());
    Act();
    if (!alive()) return;
  }
  if (next != kNever) PlanLease(std::max(next, world_.scheduler().now() + 1ms));
}

// What the coordinator is told, rightly or not.
LinkView SimHost::BelievedLease() const {
  LinkView lease = hand_->View();
  if (world_.scenario().defect == Defect::kLeaseIsFree) lease.is_over = lease.number > 0;
  return lease;
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

void SimHost::LoseLease(Duration length) {
  lease_away_until_ = std::max(lease_away_until_, world_.scheduler().now() + length);
}

void SimHost::CutOff(Duration length) {
  cut_until_ = std::max(cut_until_, world_.scheduler().now() + length);
}

}  // namespace keel
