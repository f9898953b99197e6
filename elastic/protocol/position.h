// Position: how far a worker has come, and what its training thread is about there.
// Promises   positions are ordered: a worker that is behind another one has the smaller position.
//            Within an epoch a worker's positions only rise.
// Threads    plain values.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"

namespace keel {

struct Position {
  int64_t step = -1;   // -1: the worker has told none
  int phase = 0;       // rises within a step
  int64_t tick = 0;    // rises within a phase, where something long gets on
  auto operator<=>(const Position&) const = default;
};

inline constexpr size_t kPlaceBytesMax = 64;
// A worker tells where it is this often while nothing moves.
inline constexpr Duration kTellPause = std::chrono::milliseconds(250);

// What a worker does at its position: whether it works itself or waits for another worker.
struct Activity {
  static constexpr int kUntold = -3;     // the program does not say
  static constexpr int kAnybody = -2;    // it waits for others, and cannot tell for whom
  static constexpr int kNobody = -1;     // it is in code of its own
  std::string place;                     // in words of at most kPlaceBytesMax: "lane 3, forward"
  int waits_for = kUntold;               // a rank, or one of the above
  bool operator==(const Activity&) const = default;
};

}  // namespace keel
