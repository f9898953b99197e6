// BytePlanes: takes numbers of 2, 4 or 8 bytes apart into planes of bytes, and joins them again.
// Promises   the same bytes on every CPU, by SSE2, NEON or plain code. It works on integers only,
//            so no NaN is quieted and no denormal lost. Plane 0 is the lowest byte. With `rotate`
//            each number is first rotated left by one bit, which makes a float's exponent its top
//            byte and its sign the lowest bit.
// Does not   write past a plane or past the numbers.
// Threads    any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ckpt/format.h"

namespace keel {

using PlanePointers = std::array<std::byte*, kWidthMax>;
using ConstPlanePointers = std::array<const std::byte*, kWidthMax>;

// `count` numbers at `numbers`; planes[0 .. width-1] have room for `count` bytes each.
void SplitPlanes(const std::byte* numbers, size_t count, uint32_t width, bool rotate,
                 const PlanePointers& planes);
void JoinPlanes(const ConstPlanePointers& planes, size_t count, uint32_t width, bool rotate,
                std::byte* numbers);

// The same by plain code, with which tests compare the above.
void SplitPlanesPlain(const std::byte* numbers, size_t count, uint32_t width, bool rotate,
                      const PlanePointers& planes);
void JoinPlanesPlain(const ConstPlanePointers& planes, size_t count, uint32_t width, bool rotate,
                     std::byte* numbers);

}  // namespace keel
