// Garbage: seeded nonsense for tests to feed parsers with.
// Promises   the same seed gives the same garbage anywhere.
// Threads    one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"

namespace keel {

class Garbage {
 public:
  explicit Garbage(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t limit) { return random_.Uniform(limit); }
  template <class T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }
  // Up to `size_max` bytes of any value.
  std::string Bytes(size_t size_max) {
    std::string bytes(Below(size_max + 1), '\0');
    random_.Bytes(std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  // What a failing test prints.
  std::string Where(int round) const {
    return "seed " + std::to_string(random_.seed()) + ", round " + std::to_string(round);
  }

 private:
  Random random_;
};

}  // namespace keel
