// Random: numbers from a seed, the same bits on every machine and with every compiler.
// Promises   the same seed and the same calls give the same numbers, for ever: golden tests hold
//            them. Fork(name) depends on the seed and the name only, not on what was drawn before.
// Does not   serve cryptography; hide the seed: print it wherever a number matters.
// Threads    one at a time; give each thread its own Fork().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace keel {

class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t seed() const { return seed_; }
  // A stream of its own; the same name gives the same stream again.
  Random Fork(std::string_view name) const;

  uint64_t Next();
  // 0 .. bound-1, each equally often. A bound of 0 is a bug of the caller.
  uint64_t Uniform(uint64_t bound);
  // 0 <= x < 1, in steps of 2^-53.
  double Double();
  // True with probability p.
  bool Chance(double p) { return Double() < p; }
  void Bytes(std::span<std::byte> into);

  template <class T>
  void Shuffle(std::span<T> items) {
    for (size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[Uniform(left)]);
    }
  }

 private:
  uint64_t seed_;
  std::array<uint64_t, 4> state_;
};

// The one source that no seed governs: the kernel's. For a seed that is printed, ids and nonces.
uint64_t EntropySeed();

// `digits` random digits of lower-case hex.
std::string RandomId(Random& random, size_t digits);

}  // namespace keel
