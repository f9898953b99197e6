// Follows the highest term; claims the next one when it is this host's turn.
#include "elastic/decisions/claiming.h"

namespace keel {
namespace {

using Verdict = ClaimStep::Verdict;

std::string TermText(int64_t term) { return "term " + std::to_string(term); }

// How many hosts have their turn before this one. Whoever knows no heirs waits for as many as there
// can be: they know more of the job.
size_t TurnOf(const ClaimView& view) {
  for (size_t i = 0; i < view.heirs.size(); ++i) {
    if (view.heirs[i].incarnation == view.self) return i;
  }
  return view.followed == 0 ? kHeirsMax : view.heirs.size();
}

ClaimStep ClaimInTurn(const ClaimView& view, const std::string& why, TimePoint now) {
  const int64_t term = view.seen->term + 1;
  const auto turn = static_cast<int>(TurnOf(view));
  if (!view.may_claim) return {Verdict::kWait, 0, why + ", and this host is about to end"};
  if (now < view.free_since.value_or(now) + turn * kTurnAfterRefusal) {
    return {Verdict::kWait, 0, why + ", and others have their turn before this host"};
  }
  return {Verdict::kClaim, term, why + ", and it is this host's turn"};
}

ClaimStep WhileInForce(const ClaimView& view, TimePoint now) {
  const RoleClaim& seen = *view.seen;
  if (seen.term != view.followed) {
    const char* const who = seen.by == view.self ? "this host" : "another host";
    return {Verdict::kFollow, 0, std::string(who) + " coordinates, in " + TermText(seen.term)};
  }
  if (seen.by == view.self) return {Verdict::kStay, 0, "this host coordinates"};
  if (view.is_asked && view.may_claim) {
    return {Verdict::kClaim, seen.term + 1, "the coordinator leaves, and asks this host"};
  }
  if (!view.is_dead) return {Verdict::kStay, 0, "the coordinator is in office"};
  const ClaimStep step = ClaimInTurn(view, "the coordinator is gone", now);
  if (step.verdict == Verdict::kClaim) return step;
  return {Verdict::kStay, 0, step.detail};   // its board still takes what is written
}

}  // namespace

ClaimStep DecideClaim(const ClaimView& view, TimePoint now) {
  if (!view.seen) {
    if (!view.may_claim) return {Verdict::kWait, 0, "nobody coordinates the job"};
    return {Verdict::kClaim, 1, "nobody has coordinated this job yet"};
  }
  if (view.seen->is_alive && !view.seen->has_ended) return WhileInForce(view, now);
  if (!view.seen->has_ended) {
    return ClaimInTurn(view, TermText(view.seen->term) + " is over", now);
  }
  // Where the job ended without a host that belonged to it, that host must not begin it anew.
  if (view.followed > 0) return {Verdict::kOver, 0, "the job has ended without this host"};
  if (!view.may_claim) return {Verdict::kWait, 0, "the former job of this name has ended"};
  return {Verdict::kClaim, view.seen->term + 1, "the former job of this name has ended"};
}

}  // namespace keel
