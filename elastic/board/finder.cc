// The first time the endpoints are tried. Later the board that was lost is, and whoever may know of
// another one is asked.
#include "elastic/board/finder.h"

#include <algorithm>
#include <utility>

#include "elastic/board/peer_seal.h"
#include "elastic/protocol/board_keys.h"
#include "store/reach.h"
#include "store/resolve.h"

namespace keel {
namespace {

// For a store to appear at the endpoint, and for the own one.
constexpr Duration kStoreLimitFirst = std::chrono::seconds(5);
// The limit for making a connection to the store, and for each operation on it. A host that is
// silent for longer than this is looked for elsewhere.
constexpr Duration kStoreLimitAgain = std::chrono::seconds(2);
constexpr Duration kLookUpLimit = std::chrono::seconds(1);
constexpr Duration kCancelLook = std::chrono::milliseconds(20);
constexpr size_t kPeersKept = 2 * kHeirsMax;

std::string TextOf(const HostPort& where) {
  return AddressText(where.host, where.port.value_or(0));
}

Error NoBoardYet(const std::string& text) { return {Code::kTimeout, text}; }

}  // namespace

HostPort BoardFinder::PlaceOf(const BoardPlace& place) {
  const Result<HostPort> where = ParseEndpoint(place.address);
  return where.ok() ? *where : HostPort{"", 0};
}

Result<std::unique_ptr<Store>> BoardFinder::Connect(const CancelToken& ending) {
  State state;
  {
    const std::lock_guard lock(mutex_);
    state = state_;
  }
  // A newcomer that was told of a board which is gone knows no more than before.
  const bool is_new = !state.place || (!state.is_reached && state.heirs.empty() && state.lost_at);
  return is_new ? ConnectFirst(ending) : ConnectAgain(std::move(state), ending);
}

Result<std::unique_ptr<Store>> BoardFinder::ConnectTo(const HostPort& where,
                                                      const CancelToken& ending) {
  return stores_.Connect(where.host, where.port.value_or(0), kStoreLimitAgain, ending);
}

std::vector<std::string> BoardFinder::EndpointAddresses() const {
  std::vector<std::string> addresses;
  for (const HostPort& endpoint : config_.endpoints) {
    const auto numbers = ResolveAll(endpoint.host, kLookUpLimit);
    if (!numbers.ok()) continue;
    for (const std::string& number : *numbers) {
      addresses.push_back(AddressText(number, endpoint.port.value_or(0)));
    }
  }
  const std::optional<LinkView> lease = config_.lease();
  if (lease && !lease->link.peer.empty()) addresses.push_back(lease->link.peer);
  return addresses;
}

// Whether it names a board that was heard of lately, and that is there: another host may name one
// that it does not know yet to be gone.
bool BoardFinder::NamesABoard(const PeerAnswer& answer, const CancelToken& ending) const {
  if (answer.kind != PeerAnswer::Kind::kSight) return false;
  if (answer.sight.heard_ago >= kHeardLately) return false;
  const HostPort where = PlaceOf(answer.sight.place);
  return ReachOnce(where.host, where.port.value_or(0), config_.ask_limit, ending) ==
         Reached::kListener;
}

// A store at an endpoint is the job's first board, as far as a newcomer knows. A supervisor there
// knows which board it follows.
Result<std::unique_ptr<Store>> BoardFinder::ConnectFirst(const CancelToken& ending) {
  const bool has_endpoints = !config_.endpoints.empty();
  const HostPort first = has_endpoints ? config_.endpoints.front() : HostPort{"", 0};
  State state;
  {
    const std::lock_guard lock(mutex_);
    state = state_;
  }
  if (config_.is_ours && !state.is_first_left) {
    return stores_.Connect(first.host, first.port.value_or(0), kStoreLimitFirst, ending);
  }
  std::vector<std::string> addresses = EndpointAddresses();
  std::erase(addresses, config_.own_peer());
  const std::vector<PeerAnswer> answers =
      AskPeers(addresses, Question(), config_.ask_limit, ending);
  std::vector<PeerSight> sights;
  for (const PeerAnswer& answer : answers) {
    if (NamesABoard(answer, ending)) sights.push_back(answer.sight);
  }
  const std::optional<BoardPlace> best = FurthestAhead(sights, state.read);
  if (best) return Follow(*best, "a host at the endpoint names it", ending);
  if (state.place && Look(PlaceOf(*state.place), ending) == Reached::kListener) {
    return Follow(*state.place, "it answers again", ending);
  }
  if (state.read && clock_.Monotonic() < state.lost_at.value_or(TimePoint()) + config_.beat_limit) {
    return NoBoardYet("the board of " + PlaceText(*state.place) + " does not answer, and what is "
                      "at the endpoint may be behind it");
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].kind != PeerAnswer::Kind::kStore) continue;
    const Result<HostPort> where = ParseEndpoint(addresses[i]);
    if (!where.ok()) continue;
    KEEL_TRY_ASSIGN(std::unique_ptr<Store> store, ConnectTo(*where, ending));
    return ConnectBy(std::move(store), *where, ending);
  }
  if (!answers.empty() && answers.front().kind == PeerAnswer::Kind::kOtherJob) {
    return Error{Code::kExists, "a launcher of another job than '" + config_.job +
                                    "' listens at the endpoint " + TextOf(first) +
                                    "; give all hosts of this job the same --rdzv-id, and each job "
                                    "an endpoint of its own"};
  }
  if (const auto closed = WhyClosed(answers, first)) return *closed;
  if (!answers.empty() && answers.front().kind == PeerAnswer::Kind::kUnknown) {
    return NoBoardYet("a supervisor of this job answers at the endpoint, but has no board itself");
  }
  const bool is_led = !answers.empty() && answers.front().kind == PeerAnswer::Kind::kSight;
  if (is_led && has_endpoints) {
    return NoBoardYet("a supervisor of this job answers at the endpoint, and has not heard lately "
                      "from the board that it follows, or that one does not answer");
  }
  if (!has_endpoints) return ConnectByLease(ending);
  // It is waited for with more patience than its answers are later.
  KEEL_TRY(stores_.Connect(first.host, first.port.value_or(0), kStoreLimitFirst, ending));
  KEEL_TRY_ASSIGN(std::unique_ptr<Store> store, ConnectTo(first, ending));
  return ConnectBy(std::move(store), first, ending);
}

// Whoever listens there may be about to end, or nobody of this job.
std::optional<Error> BoardFinder::WhyClosed(const std::vector<PeerAnswer>& answers,
                                            const HostPort& endpoint) {
  const bool is_closed =
      !answers.empty() && answers.front().kind == PeerAnswer::Kind::kClosed;
  const TimePoint now = clock_.Monotonic();
  const std::lock_guard lock(mutex_);
  if (!is_closed) {
    state_.closed_since.reset();
    return std::nullopt;
  }
  if (!state_.closed_since) state_.closed_since = now;
  const std::string why = "the launcher at the endpoint " + TextOf(endpoint) +
                          " has another token than this one, or one of both has none: " +
                          std::string(kOtherTokenCure) + ", and each job an endpoint of its own";
  return now - *state_.closed_since < kOtherTokenPatience ? NoBoardYet(why)
                                                          : Error{Code::kExists, why};
}

// Nobody who can be asked knows of a board. Whoever finds that nobody holds the lease opens one; if
// several do, one of them gets the lease, and the others follow it.
Result<std::unique_ptr<Store>> BoardFinder::ConnectByLease(const CancelToken& ending) {
  std::optional<BoardPlace> own;
  {
    const std::lock_guard lock(mutex_);
    own = state_.own;
  }
  if (own) return ConnectTo(PlaceOf(*own), ending);
  const LinkView lease = config_.lease().value_or(LinkView());
  if (!lease.is_seen) return NoBoardYet("the job's lease cannot be read: " + lease.detail);
  if (lease.number > 0 && !lease.is_over) {
    return NoBoardYet("the lease names the board of " + PlaceText(lease.link.place) +
                      ", which does not answer; " + lease.detail);
  }
  const BoardPlace& last = lease.link.place;
  events_.on_turn({last.term + 1, last.epoch, "", config_.incarnation},
                  "nobody holds the job's lease: " + lease.detail);
  return NoBoardYet("this host opens a board");
}

// Where the board said that it is. Only what that very machine says counts as its word; the name by
// which it was found may lead elsewhere by now.
HostPort BoardFinder::WhereLost(const State& state) const {
  const bool is_own = state.place->by == config_.incarnation;
  if (!is_own && !state.place->address.empty()) return PlaceOf(*state.place);
  if (state.target || config_.endpoints.empty()) return state.target.value_or(HostPort{"", 0});
  return config_.endpoints.front();
}

PeerAnswer BoardFinder::AskAt(const HostPort& where, const CancelToken& ending) const {
  const Result<std::string> number = ResolveHost(where.host, kLookUpLimit);
  if (!number.ok()) return {};
  const std::string address = AddressText(*number, where.port.value_or(0));
  return AskPeers({address}, Question(), config_.ask_limit, ending).front();
}

// What one attempt finds where the board was. A process that dies may still take connections, and
// one that stands still does, so only a store that answers counts.
Reached BoardFinder::Look(const HostPort& where, const CancelToken& ending) const {
  switch (AskAt(where, ending).kind) {
    case PeerAnswer::Kind::kStore: return Reached::kListener;
    case PeerAnswer::Kind::kRefused: return Reached::kRefused;
    default: return Reached::kNothing;
  }
}

// Whether to go on.
bool BoardFinder::AwaitTurn(const State& state, const CancelToken& ending) {
  const Duration pause =
      AskAfter(config_.incarnation, state.heirs, state.hosts, state.turns);
  {
    const std::lock_guard lock(mutex_);
    ++state_.turns;
  }
  for (const TimePoint until = clock_.Monotonic() + pause; !ending.cancelled();) {
    const TimePoint now = clock_.Monotonic();
    if (now >= until) return true;
    clock_.SleepUntil(std::min(now + kCancelLook, until));
  }
  return false;
}

// The last of `answers` are those of `heirs`. Who keeps a board knows that it is there.
std::vector<PeerSight> BoardFinder::SightsThatCount(const FollowView& view,
                                                    const std::vector<PeerAnswer>& answers,
                                                    const std::vector<Heir>& heirs,
                                                    const CancelToken& ending) const {
  std::vector<BoardPlace> kept;
  for (size_t i = 0; i < heirs.size(); ++i) {
    const PeerAnswer& answer = answers[answers.size() - heirs.size() + i];
    const BoardPlace& place = answer.sight.place;
    const bool is_sight = answer.kind == PeerAnswer::Kind::kSight;
    if (is_sight && place.by == heirs[i].incarnation) kept.push_back(place);
  }
  std::vector<PeerSight> sights;
  for (const PeerAnswer& answer : answers) {
    if (answer.kind != PeerAnswer::Kind::kSight) continue;
    const BoardPlace& place = answer.sight.place;
    const bool is_kept = std::any_of(kept.begin(), kept.end(), [&](const BoardPlace& one) {
      return IsSameBoard(one, place) && one.address == place.address;
    });
    // Others may hear from the lost board although this host cannot reach it.
    const bool is_known = IsSameBoard(view.lost, place) || is_kept;
    if (is_known || NamesABoard(answer, ending)) sights.push_back(answer.sight);
  }
  return sights;
}

Result<std::unique_ptr<Store>> BoardFinder::ConnectAgain(State state, const CancelToken& ending) {
  const bool is_moving = !state.is_reached;   // to a board that it was just told of
  if (!state.lost_at && !is_moving) {
    state.lost_at = clock_.Monotonic();
    {
      const std::lock_guard lock(mutex_);
      state_.lost_at = state.lost_at;
    }
    events_.on_lost(state.place->by, false);   // how old the last beat is counts from now on
  }
  if (!AwaitTurn(state, ending)) return Error{Code::kCancelled, "the search for a board"};
  const HostPort where = WhereLost(state);
  const Reached reached = Look(where, ending);
  if (reached == Reached::kListener) {
    Result<std::unique_ptr<Store>> store = ConnectTo(where, ending);
    if (store.ok() || ending.cancelled()) return store;   // else a process that stands still
  }
  if (!state.lost_at) state.lost_at = clock_.Monotonic();
  state.refused |= reached == Reached::kRefused;
  {
    const std::lock_guard lock(mutex_);
    state_.lost_at = state.lost_at;
    state_.refused = state.refused;
  }
  if (!is_moving) events_.on_lost(state.place->by, state.refused);
  FollowView view{config_.incarnation, *state.place, state.heirs,        *state.lost_at,
                  state.heard,         state.refused, config_.beat_limit, state.own, {}};
  view.lost.epoch = std::max(view.lost.epoch, state.epoch);
  std::vector<std::string> asked = EndpointAddresses();
  // A supervisor that listens where the board was may know another one. A refusal is an answer.
  if (reached == Reached::kRefused) {
    std::erase(asked, AddressText(where.host, where.port.value_or(0)));
  }
  const size_t endpoints = asked.size();
  const std::vector<Heir> heirs = HeirsToAsk(view, clock_.Monotonic());
  for (const Heir& heir : heirs) asked.push_back(heir.peer);
  // Whoever is at an endpoint may be silent for ever.
  const Duration patience = AskPatience(config_.incarnation, heirs, state.hosts, state.turns);
  const std::vector<PeerAnswer> answers = AskPeers(asked, Question(), config_.ask_limit, ending,
                                                   {endpoints, patience});
  view.sights = SightsThatCount(view, answers, heirs, ending);
  const TimePoint now = clock_.Monotonic();
  const FollowStep step = DecideFollow(view, now);
  switch (step.verdict) {
    case FollowStep::Verdict::kFollow: return Follow(step.place, step.detail, ending);
    case FollowStep::Verdict::kOpen: events_.on_turn(step.place, step.detail); break;
    case FollowStep::Verdict::kLook: break;
  }
  // A store that came back at an endpoint is better than none.
  const bool is_late = now - *state.lost_at >= config_.beat_limit;
  if (step.verdict == FollowStep::Verdict::kLook && (is_late || !state.refused)) {
    for (size_t i = 0; i < endpoints; ++i) {
      const Result<HostPort> endpoint = ParseEndpoint(asked[i]);
      if (answers[i].kind != PeerAnswer::Kind::kStore || !endpoint.ok()) continue;
      KEEL_TRY_ASSIGN(std::unique_ptr<Store> store, ConnectTo(*endpoint, ending));
      KEEL_TRY_ASSIGN(const auto keeper, OtherKeeper(*store));
      if (!keeper) return store;
      KEEL_TRY_ASSIGN(const auto posted, PostedAhead(*store, view.lost, ending));
      if (posted) return Follow(*posted, "job '" + *keeper + "' names it", ending);
    }
  }
  return NoBoardYet("no store at " + TextOf(where) +
                    (state.refused ? ": nobody listens there" : ": it does not answer") + "; " +
                    step.detail);
}

Result<std::unique_ptr<Store>> BoardFinder::Follow(const BoardPlace& place, const std::string& why,
                                                   const CancelToken& ending) {
  const HostPort where = PlaceOf(place);
  {
    const std::lock_guard lock(mutex_);
    state_.place = place;
    state_.target = where;
    state_.heard = clock_.Monotonic();
    state_.lost_at.reset();
    state_.refused = false;
    state_.is_reached = false;
  }
  events_.on_follow(place, why);
  return ConnectTo(where, ending);
}

bool BoardFinder::NoteSuccession(const SuccessionRecord& record) {
  // Another launcher has the port of the lost one, so that process is gone: a refusal that came too
  // fast to be seen.
  std::optional<std::string> replaced;
  {
    const std::lock_guard lock(mutex_);
    const std::optional<BoardPlace>& lost = state_.place;
    const bool is_same_port = lost && state_.is_reached && lost->address == record.address;
    if (is_same_port && lost->by != record.coordinator) replaced = lost->by;
  }
  if (replaced) events_.on_lost(*replaced, true);
  const bool has_lease = config_.lease().has_value();
  const std::lock_guard lock(mutex_);
  const int64_t epoch = state_.place ? state_.place->epoch : 0;
  state_.place = BoardPlace{record.term, epoch, record.address, record.coordinator};
  state_.heard = clock_.Monotonic();
  state_.read = state_.place;
  // A board to which nobody came before it moved names no heirs. Those of the one before are asked.
  if (!record.moved || !record.heirs.empty()) state_.heirs = record.heirs;
  for (const Heir& heir : record.heirs) {
    std::erase(state_.peers, heir.peer);
    state_.peers.push_back(heir.peer);
  }
  if (state_.peers.size() > kPeersKept) {
    state_.peers.erase(state_.peers.begin(), state_.peers.end() - kPeersKept);
  }
  state_.is_reached = true;
  if (!record.moved) return false;
  state_.place = *record.moved;
  state_.target = PlaceOf(*record.moved);
  if (has_lease) state_.read.reset();   // it leads to boards that are behind, too
  state_.is_reached = false;
  state_.is_first_left |= record.coordinator == config_.incarnation;
  return true;
}

void BoardFinder::NoteContact(TimePoint beat) {
  const std::lock_guard lock(mutex_);
  state_.heard = beat;
  state_.lost_at.reset();
  state_.turns = 0;
  state_.refused = false;
}

void BoardFinder::NoteHosts(int64_t hosts) {
  const std::lock_guard lock(mutex_);
  state_.hosts = hosts;
}

void BoardFinder::NoteEpoch(int64_t newest) {
  const std::lock_guard lock(mutex_);
  if (state_.place) state_.place->epoch = std::max(state_.place->epoch, newest);
  if (state_.is_reached) state_.read = state_.place;
  state_.epoch = std::max(state_.epoch, newest);
}

int64_t BoardFinder::newest_epoch() const {
  const std::lock_guard lock(mutex_);
  return std::max(state_.epoch, state_.place ? state_.place->epoch : 0);
}

void BoardFinder::SetOwn(const std::optional<BoardPlace>& own) {
  const std::lock_guard lock(mutex_);
  state_.own = own;
}

std::optional<PeerSight> BoardFinder::Sight() const {
  const std::lock_guard lock(mutex_);
  // The next heirs wait only for a moment, and all others come here, so it is told before this
  // host's own member has come to it.
  if (!state_.place) return std::nullopt;
  BoardPlace lost = *state_.place;
  lost.epoch = std::max(lost.epoch, state_.epoch);
  const bool is_opening =
      state_.lost_at && IsToldAhead(state_.own, lost, state_.heirs, state_.refused);
  if (is_opening) return PeerSight{*state_.own, Duration(0)};
  if (!state_.is_reached) return std::nullopt;
  return PeerSight{*state_.place, std::max(clock_.Monotonic() - state_.heard, Duration(0))};
}

bool BoardFinder::is_beside() const {
  const std::lock_guard lock(mutex_);
  return state_.is_beside;
}

std::string BoardFinder::Target() const {
  const std::lock_guard lock(mutex_);
  if (!state_.target && config_.endpoints.empty()) return "the place that the lease names";
  return TextOf(state_.target.value_or(config_.endpoints.front()));
}

}  // namespace keel
