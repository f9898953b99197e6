// Mix: turns whole numbers into one that looks unrelated, the same on every machine for ever.
// Promises   the first 8 bytes, read big-endian, of the XXH3-128 of the values as 8 little-endian
//            bytes each. Golden tests hold it to that: seeds and the order of samples rest on it.
// Does not   serve cryptography.
// Threads    any.
#pragma once

#include <cstdint>
#include <span>

namespace keel {

uint64_t Mix(std::span<const uint64_t> values);

// The seed of the default random generators for one lane of one step.
uint64_t LaneSeed(uint64_t seed, uint64_t step, uint64_t lane);
// The one with which the lane's samples are loaded, maybe long before.
uint64_t DataSeed(uint64_t seed, uint64_t step, uint64_t lane);

}  // namespace keel
