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

HolderVerdict JudgeHolder(const LeaseHolding& holding) {
  HolderVerdict verdict;
  const std::optional<Error>& failure = holding.failure;
  if (failure && (failure->code == Code::kStaleEpoch || failure->code == Code::kExists)) {
    verdict.is_lost = true;
    verdict.detail = "its lease is lost: " + failure->message;
    return verdict;
  }
  verdict.beat_at = holding.tried + (failure ? kLeaseBeatRetry : kLeaseBeatInterval);
  return verdict;
}

}  // namespace keel
