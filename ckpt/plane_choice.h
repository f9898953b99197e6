// PlaneChoice: which planes of a frame are worth coding, judged by a thousand sampled numbers.
// Promises   it uses whole numbers only, so every CPU and compiler decides alike and writes the
//            same bytes.
// Does not   look at more than 1024 numbers, wherever they lie in the frame.
// Threads    any; a pure function.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel {

struct PlaneChoice {
  bool rotate = false;
  uint8_t coded = 0;      // bit p: plane p goes through the coder, the others stay as they are
  uint8_t seek_runs = 0;  // bit p: it is mostly one value
};

// `count` numbers of `width` bytes (2, 4 or 8).
PlaneChoice ChoosePlanes(const std::byte* numbers, size_t count, uint32_t width);

}  // namespace keel
