// Restarts: whether to go on after failures, and when to start a seat again (PROTOCOL.md, 8).
// Threads    pure functions.
#pragma once

#include <span>
#include <string>

#include "base/clock.h"
#include "elastic/protocol/limits.h"

namespace keel {

struct RestartPolicy {
  int restarts_max = 0;
  Duration window = kRestartWindow;   // only failures within the last `window` count; 0: all do
};

struct RestartDecision {
  bool go_on = true;
  int spent = 0;              // failures that count
  TimePoint again = kNever;   // when fewer will count; kNever: no sooner than for ever
  std::string reason;         // "3 of 5 restarts spent in the last 10 min 0 s"
};

RestartDecision DecideRestart(std::span<const TimePoint> failures, const RestartPolicy& policy,
                              TimePoint now);

// A worker that lived this long did not "fail at once".
inline constexpr Duration kSettled = std::chrono::seconds(1);

// How long to wait after so many failures at once in a row: 0, 0.1, 0.2, 0.4 ... 5 s.
Duration RestartDelay(int failures_in_a_row);

}  // namespace keel
