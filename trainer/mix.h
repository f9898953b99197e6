// Mix: whole numbers to whole numbers that look unrelated, the same on every machine for ever.
// Promises   each bit of each input changes each bit of the result half of the time; for one input
//            alone the mapping is one to one. Golden tests hold it: samples and seeds rest on it.
// Does not   serve cryptography.
// Threads    any.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace keel {

// The finalizer of David Stafford's study of MurmurHash3's ("variant 13").
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// In this order: {1, 2} and {2, 1} give different numbers, and so do {1} and {1, 0}.
constexpr uint64_t Mix(std::initializer_list<uint64_t> values) {
  uint64_t state = 0;
  for (const uint64_t value : values) state = Mix(state + 0x9E3779B97F4A7C15u) ^ Mix(~value);
  return Mix(state);
}

// The seed of the default random generators for one lane of one step.
constexpr uint64_t LaneSeed(uint64_t seed, uint64_t step, uint64_t lane) {
  constexpr uint64_t kDomain = 0x6C616E65;  // "lane": apart from what else is drawn from the seed
  return Mix({kDomain, seed, step, lane});
}

}  // namespace keel
