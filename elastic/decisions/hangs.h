// Hangs: whether a group stands still, and which worker holds it up (PROTOCOL.md section 13).
// Promises   a worker that only waits for others is never named while one is known that they wait
//            for. While several workers take part, never all of them are named, since together they
//            hold the state.
// Does not   look at clocks or processes: the caller says when it last saw anything move.
// Threads    pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/protocol/limits.h"
#include "elastic/protocol/position.h"

namespace keel {

// A worker that has told nothing for so long (it does every kTellPause) is silent.
inline constexpr Duration kSilentAfter = std::chrono::milliseconds(1500);

// The limit that the user asked for; without one, 20 median steps, but at least a minute.
Duration HangLimit(std::optional<Duration> asked, Duration median_step);

// The limit that holds while the job stops and has `deadline` to do it.
Duration HangLimitOfStop(Duration usual, Duration deadline);

struct RankStanding {
  int rank = 0;
  Position position;
  Activity activity = {};
  bool silent = false;   // its supervisor hears nothing of it, although it should
};

struct HangDecision {
  std::vector<int64_t> ranks;   // those that hold up the others; empty: nobody hangs
  TimePoint until = kNever;     // when to ask again if nothing moves
  std::string reason;           // why they are named, or why nobody is although nothing moves
};

struct HangLimits {
  Duration enter;   // from the start of the epoch until each worker has told a position
  Duration move;    // from one change of any standing to the next, once all have told a position
};

// `moved`: when any of the positions or activities last changed, or the epoch began.
HangDecision DecideHang(const std::vector<RankStanding>& standings, TimePoint moved,
                        const HangLimits& limits, TimePoint now);

}  // namespace keel
