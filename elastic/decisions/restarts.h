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
  TimePoint again = kNever;   // when few enough will count to go on; kNever: they always will
  std::string reason;         // "3 of 5 restarts spent in the last 10 min 0 s"
};

RestartDecision DecideRestart(std::span<const TimePoint> failures, const RestartPolicy& policy,
                              TimePoint now);

// A worker that lived for this long has not failed at once, so its successor starts without a
// delay.
inline constexpr Duration kSettled = std::chrono::seconds(1);

// How long to wait before the next start, by how many workers in a row failed at once: 0, 0.1, 0.2,
// 0.4 ... 5 s.
Duration RestartDelay(int failures_in_a_row);

}  // namespace keel
