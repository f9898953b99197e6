// LeaseTimes: when a holder may still act on its term, and when a looker may claim the next one.
// Promises   where clocks of two hosts pass at about the same rate, no two holders may form below
//            a quorum at a time. No clocks are compared: each side judges with its own monotonic
//            one. A look that fails shows nothing, and a process that was suspended between two
//            looks is not misled.
// Does not   read clocks, or call the lease. See a holder that is suspended between its judgement
//            and its act: against that, the term itself must be checked where the act takes effect.
// Threads    pure functions over plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/lease/lease.h"

namespace keel {

// A holder beats so often, and after a beat that failed it tries again so soon.
inline constexpr Duration kLeaseBeatInterval = std::chrono::seconds(2);
inline constexpr Duration kLeaseBeatRetry = std::chrono::milliseconds(500);
// A holder acts only while its last beat that succeeded is younger.
inline constexpr Duration kLeaseFormLimit = std::chrono::seconds(5);
// A looker claims the next term once the beat has stood still for so long.
inline constexpr Duration kLeaseStillLimit = std::chrono::seconds(7);
static_assert(kLeaseBeatRetry < kLeaseBeatInterval);
static_assert(2 * kLeaseBeatInterval < kLeaseFormLimit, "one beat may be lost");
static_assert(kLeaseFormLimit < kLeaseStillLimit);

// --- A looker ---

struct LeaseWatch {
  std::optional<LeaseSight> sight;   // the last
  TimePoint since;                   // when the first look that saw it so had ended
  TimePoint until;                   // when the last look that saw it so began
};

// `began`, `ended`: of a Look() that succeeded.
LeaseWatch AfterLook(LeaseWatch before, const LeaseSight& sight, TimePoint began, TimePoint ended);

enum class LookerReason { kNotSeen, kFree, kReleased, kStoodStill, kHeld, kHeldByAnotherRun };

struct LookerVerdict {
  bool may_claim = false;
  int64_t term = 0;           // to be claimed then
  LookerReason reason = LookerReason::kNotSeen;
  TimePoint look_at = kNever; // when to look again, otherwise
  std::string detail;         // "term 3 is held, its beat rose 1.5 s ago"
};
// `run`: the looker's own.
LookerVerdict JudgeLooker(const LeaseWatch& watch, const std::string& run, TimePoint now);

// --- The holder ---

struct LeaseHolding {
  TimePoint tried;                   // when the last Claim() or Beat() began
  std::optional<TimePoint> beaten;   // when the last one that succeeded began
  std::optional<Error> failure;      // of the last one
  TimePoint alone_from = kNever;     // when no former holder can think any more that it may form
};

// A claim counts as a beat. `watch` is what the claimant had seen before it.
LeaseHolding AfterClaim(const LeaseWatch& watch, const Result<LeaseGrant>& grant, TimePoint began,
                        TimePoint ended);
// Counted from the beginning of a call: its effect may have come at any time after that.
LeaseHolding AfterBeat(LeaseHolding before, TimePoint began, const Status& status);

struct HolderVerdict {
  bool may_form = false;      // with a quorum
  bool is_alone = false;      // ... and below it: nobody else may
  bool is_lost = false;       // for ever: somebody else holds it, or a higher term
  TimePoint beat_at = kNever; // when to beat next
  std::string detail;         // why it may not: "no beat of its lease succeeded for 6 s: ..."
};
HolderVerdict JudgeHolder(const LeaseHolding& holding, TimePoint now);

}  // namespace keel
