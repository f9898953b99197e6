// LeaseTimes: when a holder beats, and when a looker may claim the next term.
// Promises   no clocks are compared: each side judges with its own monotonic one. A look that fails
//            shows nothing, and a process that was suspended between two looks is not misled.
// Does not   read clocks, or call the lease. Say who may act: times prove nothing, and the term
//            itself must be checked where an act takes effect.
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
// What a beat or a look has shown counts while it is younger.
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
  TimePoint tried;                // when the last Claim() or Beat() began
  std::optional<Error> failure;   // of that
};

struct HolderVerdict {
  bool is_lost = false;       // for ever: somebody else holds it, or a higher term
  TimePoint beat_at = kNever; // when to beat next
  std::string detail;         // why it is lost
};
HolderVerdict JudgeHolder(const LeaseHolding& holding);

}  // namespace keel
