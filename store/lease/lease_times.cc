// Two comparisons of times, and what they mean in words.
#include "store/lease/lease_times.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace keel {

namespace {

bool StoodStill(const LeaseWatch& watch) {
  return watch.until - watch.since >= kLeaseStillLimit;
}

}  // namespace

LeaseWatch AfterLook(LeaseWatch before, const LeaseSight& sight, TimePoint began,
                     TimePoint ended) {
  const bool stands_still = before.sight && before.sight->term == sight.term &&
                            before.sight->beat == sight.beat;
  if (!stands_still) before.since = ended;
  before.until = began;
  before.sight = sight;
  return before;
}

LookerVerdict JudgeLooker(const LeaseWatch& watch, const std::string& run, TimePoint now) {
  LookerVerdict verdict;
  if (!watch.sight) {
    verdict.look_at = now;
    verdict.detail = "its lease has not been seen";
    return verdict;
  }
  const LeaseSight& sight = *watch.sight;
  const std::string term = "term " + std::to_string(sight.term);
  verdict.may_claim = true;
  verdict.term = sight.term + 1;
  if (sight.term == 0) {
    verdict.reason = LookerReason::kFree;
    verdict.detail = "no term is claimed";
  } else if (sight.released) {
    verdict.reason = LookerReason::kReleased;
    verdict.detail = term + " was released";
  } else if (StoodStill(watch)) {
    verdict.reason = LookerReason::kStoodStill;
    verdict.detail = "the beat of " + term + " stood still for " +
                     DurationText(watch.until - watch.since);
  } else {
    const bool is_ours = sight.run == run || !sight.damage.empty();
    verdict.may_claim = false;
    verdict.term = 0;
    verdict.reason = is_ours ? LookerReason::kHeld : LookerReason::kHeldByAnotherRun;
    verdict.look_at = std::min(now + kLeaseBeatInterval, watch.since + kLeaseStillLimit);
    verdict.detail = is_ours ? term + " is held, its beat rose " +
                                   DurationText(now - watch.since) + " ago"
                             : "another run of this job holds " + term +
                                   " of the lease, and says " + Shown(sight.text) +
                                   ": stop that run first, or give this job another name";
  }
  return verdict;
}

// A holder that beats just before the claim is in place may have found no higher term, and form for
// kLeaseFormLimit; one that beats later finds the claim. So the beat that was still is looked at
// again once the claim is in place: if it is another one, or was not watched for long, the claimant
// lets the former holder's time run out.
LeaseHolding AfterClaim(const LeaseWatch& watch, const Result<LeaseGrant>& grant, TimePoint began,
                        TimePoint ended) {
  LeaseHolding holding;
  holding.tried = began;
  if (!grant.ok()) {
    holding.failure = grant.error();
    return holding;
  }
  holding.beaten = began;
  const bool was_seen = watch.sight && watch.sight->term == grant->former;
  const bool is_over = grant->former == 0 || (was_seen && watch.sight->released) ||
                       (was_seen && watch.sight->beat == grant->former_beat && StoodStill(watch));
  holding.alone_from = is_over ? ended : ended + kLeaseStillLimit;
  return holding;
}

LeaseHolding AfterBeat(LeaseHolding before, TimePoint began, const Status& status) {
  before.tried = began;
  before.failure.reset();
  if (status.ok()) {
    before.beaten = began;
  } else {
    before.failure = status.error();
  }
  return before;
}

HolderVerdict JudgeHolder(const LeaseHolding& holding, TimePoint now) {
  HolderVerdict verdict;
  const std::string why = holding.failure ? ": " + holding.failure->message : "";
  if (holding.failure && (holding.failure->code == Code::kStaleEpoch ||
                          holding.failure->code == Code::kExists)) {
    verdict.is_lost = true;
    verdict.detail = "its lease is lost" + why;
    return verdict;
  }
  verdict.beat_at = holding.tried + (holding.failure ? kLeaseBeatRetry : kLeaseBeatInterval);
  verdict.may_form = holding.beaten && now - *holding.beaten < kLeaseFormLimit;
  verdict.is_alone = verdict.may_form && now >= holding.alone_from;
  if (!verdict.may_form) {
    verdict.detail = holding.beaten ? "no beat of its lease succeeded for " +
                                          DurationText(now - *holding.beaten) + why
                                    : "it has no lease" + why;
  }
  return verdict;
}

}  // namespace keel
