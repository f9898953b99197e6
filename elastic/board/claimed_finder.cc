// Each attempt looks at the claim first, and then does what is decided.
#include "elastic/board/claimed_finder.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "elastic/board/ask.h"
#include "elastic/decisions/follow.h"

namespace keel {
namespace {

// A claim that was made is followed in the next step; others may claim meanwhile, again and again.
constexpr int kStepsMost = 4;

}  // namespace

Result<std::unique_ptr<Store>> ClaimedFinder::Connect(const CancelToken& ending) {
  ending_ = ending;
  std::string waits = "the role of the coordinator goes from host to host";
  for (int i = 0; i < kStepsMost && !ending.cancelled(); ++i) {
    KEEL_TRY_ASSIGN(const ClaimStep step, LookAndDecide(ending));
    KEEL_TRY(OpenClaimed(ending));
    waits = step.detail;
    switch (step.verdict) {
      case ClaimStep::Verdict::kStay:
      case ClaimStep::Verdict::kFollow: return Follow(step.detail);
      case ClaimStep::Verdict::kClaim:
        KEEL_TRY(Claim(step));   // made by whomever: it is followed next
        break;
      case ClaimStep::Verdict::kWait:
      case ClaimStep::Verdict::kOver: return Error{Code::kTimeout, Target() + ": " + waits};
    }
  }
  return Error{Code::kTimeout, Target() + ": " + waits};
}

bool ClaimedFinder::IsOver() {
  const Result<ClaimStep> step = LookAndDecide(ending_);
  // Where the claim cannot be looked at, the board cannot be reached either, and its owner sees it.
  if (!step.ok() || step->verdict == ClaimStep::Verdict::kStay) return false;
  std::string coordinator;
  bool is_dead = false;
  {
    const std::lock_guard lock(mutex_);
    coordinator = state_.followed.by;
    is_dead = state_.view.is_dead;
    state_.is_reached = false;
  }
  LogInfo("coordinator-lost", {{"reason", step->detail}});
  events_.on_lost(coordinator, is_dead);
  return true;
}

Result<ClaimStep> ClaimedFinder::LookAndDecide(const CancelToken& ending) {
  KEEL_TRY_ASSIGN(const std::optional<RoleClaim> seen, home_.LookUntil(ending));
  bool is_in_doubt = false;
  RoleClaim followed;
  {
    const std::lock_guard lock(mutex_);
    followed = state_.followed;
    is_in_doubt = state_.is_presence_lost;
  }
  const bool is_same = seen && seen->is_alive && seen->term == followed.term;
  const bool is_dead = is_same && is_in_doubt && IsHolderDead(*seen, ending);
  NoteSeen(seen, is_dead);
  const std::lock_guard lock(mutex_);
  return DecideClaim(state_.view, clock_.Monotonic());
}

// The process is dead where a connection to it was closed, and its machine then refuses another.
bool ClaimedFinder::IsHolderDead(const RoleClaim& holder, const CancelToken& ending) {
  using Kind = PeerAnswer::Kind;
  const Kind kind = AskPeers({holder.peer}, Question(), kAskLimit, ending).front().kind;
  if (kind == Kind::kSight || kind == Kind::kUnknown) {
    const std::lock_guard lock(mutex_);
    state_.is_presence_lost = false;   // it lives
  }
  return kind == Kind::kRefused;
}

void ClaimedFinder::NoteSeen(const std::optional<RoleClaim>& seen, bool is_dead) {
  int64_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    ClaimView& view = state_.view;
    view.self = config_.incarnation;
    const bool is_same_term = seen && view.seen && seen->term == view.seen->term;
    view.seen = seen;
    view.is_dead = is_dead;
    const bool is_held = seen && seen->is_alive && !seen->has_ended && !is_dead;
    if (is_held) {
      view.free_since.reset();
    } else if (!view.free_since || !is_same_term) {
      view.free_since = clock_.Monotonic();
    }
    const bool is_own = seen && seen->is_alive && seen->term == state_.own;
    if (state_.own != 0 && !is_own) lost = std::exchange(state_.own, 0);
    if (lost != 0) state_.unopened.reset();
  }
  if (lost == 0) return;
  home_.Release();
  events_.on_role_lost(lost, seen && seen->term > lost
                                 ? "another host has claimed term " + std::to_string(seen->term)
                                 : "the claim is over");
}

Result<std::unique_ptr<Store>> ClaimedFinder::Follow(const std::string& why) {
  RoleClaim claim;
  {
    const std::lock_guard lock(mutex_);
    claim = *state_.view.seen;
  }
  KEEL_TRY_ASSIGN(std::unique_ptr<Store> store, home_.Connect(claim));
  const std::lock_guard lock(mutex_);
  if (claim.term != state_.followed.term) {
    LogInfo("board-followed", {{"term", claim.term}, {"coordinator", claim.peer}, {"reason", why}});
    state_.followed = claim;
    state_.place = {claim.term, state_.epoch, claim.peer, claim.by};
    state_.view.followed = claim.term;
    state_.view.heirs.clear();
    state_.view.is_asked = state_.view.is_dead = false;
    state_.view.free_since.reset();
    state_.is_presence_lost = state_.is_reached = false;
  }
  return store;
}

Status ClaimedFinder::Claim(const ClaimStep& step) {
  RoleClaim claim;
  claim.term = step.term;
  claim.by = config_.incarnation;
  claim.peer = config_.own_peer();
  Claimed claimed;
  {
    const std::lock_guard lock(mutex_);
    claimed.before = state_.view.seen;
    claimed.turn.next = {step.term, state_.epoch, claim.peer, claim.by};
    if (state_.view.is_asked) claimed.turn.handed_over_by = state_.followed.by;
  }
  claimed.turn.why = step.detail;
  KEEL_TRY_ASSIGN(const bool is_ours, home_.Claim(claim));
  if (!is_ours) return Ok();
  const std::lock_guard lock(mutex_);
  state_.own = step.term;
  state_.unopened = std::move(claimed);
  return Ok();
}

// An epoch of which this host does not know may still run, so the boards before are read first. If
// that fails, it is tried again, for as long as the claim is in force.
Status ClaimedFinder::OpenClaimed(const CancelToken& ending) {
  std::optional<Claimed> claimed;
  {
    const std::lock_guard lock(mutex_);
    claimed = state_.unopened;
  }
  if (!claimed) return Ok();
  Turn& turn = claimed->turn;
  KEEL_TRY_ASSIGN(FormerBoard former, ReadFormer(claimed->before, ending));
  turn.former = std::move(former.epoch);
  // A claim may run out although its holder lives: then it comes to the next board, too.
  if (former.coordinator_lives) turn.handed_over_by = claimed->before->by;
  if (turn.former) turn.next.epoch = std::max(turn.next.epoch, turn.former->number);
  {
    const std::lock_guard lock(mutex_);
    state_.unopened.reset();
  }
  events_.on_turn(turn);
  return Ok();
}

// From now on nothing is written to those boards that their coordinators could act on. What cannot
// be understood stays so.
Result<FormerBoard> ClaimedFinder::ReadFormer(const std::optional<RoleClaim>& before,
                                              const CancelToken& ending) const {
  if (!before || before->has_ended) return FormerBoard();
  const OpenBoard open = [&](int64_t term) {
    RoleClaim claim = *before;
    claim.term = term;
    return home_.ConnectReader(claim);
  };
  Result<FormerBoard> former =
      ReadFormerBoard(open, before->term, Question(), before->peer, ending);
  if (former.ok()) return former;
  const Error why =
      former.error().Doing("reading the board of term " + std::to_string(before->term));
  if (IsPassing(why.code)) return why;
  LogWarn("former-board-not-read", {{"term", before->term}, {"reason", why.message}});
  return FormerBoard();
}

bool ClaimedFinder::NoteSuccession(const SuccessionRecord& record) {
  const std::lock_guard lock(mutex_);
  state_.is_reached = true;
  state_.heard = clock_.Monotonic();
  state_.view.heirs = record.heirs;
  state_.view.is_asked = record.chosen == config_.incarnation;
  return state_.view.is_asked;
}

void ClaimedFinder::NoteEpoch(int64_t newest) {
  const std::lock_guard lock(mutex_);
  state_.epoch = std::max(state_.epoch, newest);
  state_.place.epoch = std::max(state_.place.epoch, newest);
}

void ClaimedFinder::NoteContact(TimePoint beat) {
  const std::lock_guard lock(mutex_);
  state_.heard = beat;
}

int64_t ClaimedFinder::newest_epoch() const {
  const std::lock_guard lock(mutex_);
  return state_.epoch;
}

void ClaimedFinder::NotePresenceLost() {
  const std::lock_guard lock(mutex_);
  state_.is_presence_lost = true;
}

void ClaimedFinder::NoteFinishing() {
  const std::lock_guard lock(mutex_);
  state_.view.may_claim = false;
}

std::optional<PeerSight> ClaimedFinder::Sight() const {
  const std::lock_guard lock(mutex_);
  if (!state_.is_reached) return std::nullopt;
  return PeerSight{state_.place, std::max(clock_.Monotonic() - state_.heard, Duration(0))};
}

}  // namespace keel
