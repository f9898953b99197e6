// Hangs: whether a group stands still, and who holds it up (PROTOCOL.md section 11).
// Does not   look at clocks or processes: the caller says when it last saw anything move.
// Threads    pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/position.h"

namespace keel {

inline constexpr Duration kHangLimitMin = std::chrono::seconds(60);
inline constexpr int kHangSteps = 20;

// What the user asked for; else 20 median steps, and never less than a minute.
Duration HangLimit(std::optional<Duration> asked, Duration median_step);

struct RankPosition {
  int rank = 0;
  Position position;
};

struct HangDecision {
  std::vector<int64_t> ranks;   // those furthest behind; empty: nobody hangs
  TimePoint until = kNever;     // when to ask again if nothing moves
  std::string reason;
};

struct HangLimits {
  Duration enter;   // from being let in to the first position of each
  Duration move;    // from one change of any position to the next, once all have told one
};

// `moved`: when any of the positions last changed, or the epoch began.
HangDecision DecideHang(const std::vector<RankPosition>& positions, TimePoint moved,
                        const HangLimits& limits, TimePoint now);

}  // namespace keel
