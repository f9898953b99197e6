// Where the board is, and what a host does that keeps it: BoardFinder, Keeper and LeaseThread in
// earnest.
#include "tests/sim/host.h"

namespace keel {

using namespace std::chrono_literals;

std::optional<PeerSight> SimHost::Sight() const {
  if (!place_) return std::nullopt;
  BoardPlace lost = *place_;
  lost.epoch = std::max(lost.epoch, epoch_);
  const bool is_opening = lost_at_ && IsToldAhead(own_place(), lost, heirs_, refused_);
  if (is_opening) return PeerSight{*own_place(), Duration(0)};
  if (!is_reached_) return std::nullopt;
  return PeerSight{*place_, Now() - heard_};
}

void SimHost::Offer(const BoardPlace& place) {
  if (!coordinator_) return;
  coordinator_->NoteOffer(place);
  PlanCoordinator(Now());
}

void SimHost::Follow(const BoardPlace& place) {
  world_.Trace("h" + std::to_string(number_) + " follows " + PlaceText(place) +
               ", epoch " + std::to_string(place.epoch));
  place_ = place;
  heard_ = Now();
  is_reached_ = false;
  lost_at_.reset();
  refused_ = false;
  store_ = Connect("member " + std::to_string(number_), place.address);
  member_->NoteConnection();
}

// Whether there is a board to talk to, which may not answer.
bool SimHost::FindBoard(TimePoint now) {
  if (!place_ || (!is_reached_ && heirs_.empty() && lost_at_)) {
    const std::optional<BoardPlace> best = FurthestAhead(world_.AskOthers(number_), reached_);
    return FollowFirst(best, now);
  }
  const Reached reached = world_.Look(number_, place_->address);
  const bool stands_still = world_.GoesOn(number_, place_->address) != kNever;
  if (reached == Reached::kListener && !stands_still) {
    store_ = Connect("member " + std::to_string(number_), place_->address);
    member_->NoteConnection();
    return true;
  }
  SearchBoard(now, reached == Reached::kRefused);
  return store_ != nullptr;
}

// Whoever was on a board before goes to one that may be behind it only where it finds no other.
bool SimHost::FollowFirst(const std::optional<BoardPlace>& best, TimePoint now) {
  const bool is_back = place_ && world_.Look(number_, place_->address) == Reached::kListener &&
                       world_.GoesOn(number_, place_->address) == kNever;
  if (best || is_back) {
    Follow(best ? *best : *place_);
    return true;
  }
  const std::string endpoint = world_.EndpointFor(number_);
  if (endpoint.empty()) return false;
  const Duration limit = world_.scenario().policy.beat_limit;
  if (reached_ && now < lost_at_.value_or(TimePoint()) + limit) return false;
  takes_any_ = reached_.has_value();
  Follow({0, 0, endpoint, ""});
  return true;
}

void SimHost::SearchBoard(TimePoint now, bool refused) {
  if (!lost_at_) lost_at_ = now;
  refused_ |= refused;
  if (is_reached_) {
    const bool lies = Errs(Defect::kSilenceIsDeath);
    host_->OnBoardLost(place_->by, lies ? 0 : member_->promised(), refused_ || lies, now);
    Act();
    if (!alive()) return;
  }
  FollowView view{incarnation_, *place_,
                  heirs_,       *lost_at_,
                  heard_,       refused_,
                  world_.scenario().policy.beat_limit,
                  own_place(),  world_.AskOthers(number_, *place_)};
  view.lost.epoch = std::max(view.lost.epoch, epoch_);
  const FollowStep step = DecideNext(view, now);
  if (step.verdict == FollowStep::Verdict::kFollow) return Follow(step.place);
  if (world_.scenario().one_coordinator) return;
  const bool is_new = !coordinator_ || coordinator_->place().term < step.place.term ||
                      Errs(Defect::kOpensTwice);
  if (step.verdict != FollowStep::Verdict::kOpen || !is_new) return;
  OpenBoard(step.place.term, step.place.epoch, "");
}

// What this host does next that has lost its board, rightly or not.
FollowStep SimHost::DecideNext(FollowView view, TimePoint now) const {
  const BoardPlace lost = view.lost;
  const auto is_lost = [&](const PeerSight& sight) { return IsSameBoard(sight.place, lost); };
  if (Errs(Defect::kOpensTwice)) view.own.reset();
  if (Errs(Defect::kTakesUnasked)) std::erase_if(view.sights, is_lost);
  const FollowStep step = DecideFollow(view, now);
  if (!Errs(Defect::kFollowsBehind) || step.verdict != FollowStep::Verdict::kLook) return step;
  for (const PeerSight& sight : view.sights) {
    if (!is_lost(sight)) return {FollowStep::Verdict::kFollow, sight.place, "anything will do"};
  }
  return step;
}

void SimHost::OnSuccession(const SuccessionRecord& record) {
  const int64_t epoch = place_->epoch;
  place_ = BoardPlace{record.term, epoch, record.address, record.coordinator};
  // A board of its own is as far as this host is, which tells it so as soon as it registers.
  const bool is_own = record.coordinator == incarnation_;
  if (reached_ && is_own) place_->epoch = std::max(place_->epoch, reached_->epoch);
  const bool takes_any = std::exchange(takes_any_, false);
  if (reached_ && !IsSameBoard(*reached_, *place_) && !takes_any) {
    world_.BoardReached(number_, *reached_, *place_);
  }
  reached_ = place_;
  if (!record.moved || !record.heirs.empty()) heirs_ = record.heirs;
  heard_ = Now();
  is_reached_ = true;
  if (record.moved) {
    is_reached_ = false;
    place_ = *record.moved;
    if (hand_) reached_.reset();   // a lease leads to boards that are behind, too
    store_.reset();
    told_ = false;
    if (exiting_) exit_by_ = Now() + world_.scenario().host.close_limit;
    return;
  }
  if (record.chosen != incarnation_) return;
  if (!coordinator_ || coordinator_->place().term <= record.term) {
    OpenBoard(record.term + 1, std::max(epoch_, epoch), record.coordinator);
    if (Errs(Defect::kOutrunsMoved)) return;
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
  const TimePoint now = Now();
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
  if (Errs(Defect::kDeafCoordinator) && epochs_ > 0) return;
  PlanCoordinator(std::max(coordinator_->NextPoll(), now + 1ms));
}

// --- The job's lease: LeaseThread in earnest ---

MemoryLease::Way SimHost::BeforeLease() {
  const Scenario& scenario = world_.scenario();
  const bool is_cut = cut_off() && scenario.lease_needs_link;
  if (is_cut || TrueTime() < lease_away_until_) return MemoryLease::Way::kAway;
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
    host_->OnMemberEvent(LinkSeen{seen.link.epoch}, Now());
    Act();
    if (!alive()) return;
  }
  if (next != kNever) PlanLease(std::max(next, Now() + 1ms));
}

// What the coordinator is told, rightly or not.
LinkView SimHost::BelievedLease() const {
  LinkView lease = hand_->View();
  if (Errs(Defect::kLeaseIsFree)) lease.is_over = lease.number > 0;
  if (Errs(Defect::kFormsOn) && lease.is_seen) lease.is_ours = true;
  return lease;
}

// --- The role ---

void SimHost::OpenBoard(int64_t term, int64_t epoch, const std::string& handed_over_by) {
  if (!Errs(Defect::kOpensTwice)) term = NextTerm(term - 1, opened_term_);
  opened_term_ = std::max(opened_term_, term);
  kept_ = world_.OpenBoard(number_);
  coordinator_store_.reset();
  CoordinatorConfig config;
  config.job = kSimJob;
  config.is_sealed = world_.scenario().sealed;
  config.incarnation = incarnation_;
  config.presence = PeerOf(number_);
  config.address = kept_;
  config.term = term;
  config.epoch = epoch;
  config.shunned = shunned_;
  const bool is_asked = !handed_over_by.empty();
  const bool outruns = is_asked && Errs(Defect::kOutrunsMoved);
  if (!outruns) config.handed_over_by = handed_over_by;
  config.look_at = [this](const std::string& peer) { return world_.LookAtPeer(number_, peer); };
  config.policy = world_.scenario().policy;
  if (hand_) {
    config.lease = [this] { return BelievedLease(); };
    config.claim = [this](const LinkRecord& link, int64_t after) {
      Status claimed = hand_->Claim(link, after);
      world_.Trace("h" + std::to_string(number_) + " claims " + std::to_string(after + 1) +
                   " for epoch " + std::to_string(link.place.epoch) + ": " +
                   (claimed.ok() ? "ok" : claimed.error().message));
      if (Errs(Defect::kFormsOn)) claimed = Ok();
      return claimed;
    };
  }
  config.poll_interval = 100ms;
  if (Errs(Defect::kNoQuorum)) config.policy.needs_quorum = false;
  if (Errs(Defect::kNoFence)) config.policy.fence_limit = Duration(0);
  config.policy.allow_inexact = Errs(Defect::kAnyNumerics);
  if (outruns) config.policy.needs_quorum = false;
  config.close_limit = world_.scenario().host.close_limit;
  epochs_ = 0;
  const auto open_epoch_store = [this](const EpochRecord& epoch) -> Result<EpochStore> {
    ++epochs_;
    world_.EpochFormed(epoch);
    return EpochStore{"10.0.0.1", 2, coordinator_->generation() + "/" + epoch.id + "/"};
  };
  coordinator_ = std::make_unique<Coordinator>(
      config, random_->Fork("board " + std::to_string(++boards_)), open_epoch_store);
  world_.BoardOpened(number_, coordinator_->generation(), coordinator_->place(), place_, is_asked);
  world_.Trace("h" + std::to_string(number_) + " opens a board of term " + std::to_string(term) +
               ", epoch " + std::to_string(epoch) + ", at " + kept_);
  coordinate_ = kNever;
  PlanCoordinator(Now());
  if (outruns) Follow(coordinator_->place());
}

std::optional<BoardPlace> SimHost::own_place() const {
  return coordinator_ ? std::optional(coordinator_->place()) : std::nullopt;
}

}  // namespace keel
