// Position: how far a worker has come.
// Threads    a plain value.
#pragma once

#include <compare>
#include <cstdint>

namespace keel {

// Ordered: who is behind has the smaller one.
struct Position {
  int64_t step = -1;   // -1: it has told none
  int phase = 0;       // rises within a step
  auto operator<=>(const Position&) const = default;
};

}  // namespace keel
