// Seeded garbage for tests to feed parsers with: the same seed gives the same garbage anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace keel {

class Garbage {
 public:
  explicit Garbage(uint64_t seed) : seed_(seed), state_(seed) {}

  // Knuth's MMIX generator; the upper bits are the good ones.
  uint64_t Below(uint64_t limit) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return (state_ >> 33) % limit;
  }
  template <class T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }
  // Up to `size_max` bytes of any value.
  std::string Bytes(size_t size_max) {
    std::string bytes(Below(size_max + 1), '\0');
    for (char& byte : bytes) byte = static_cast<char>(Below(256));
    return bytes;
  }
  // What a failing test prints.
  std::string Where(int round) const {
    return "seed " + std::to_string(seed_) + ", round " + std::to_string(round);
  }

 private:
  uint64_t seed_;
  uint64_t state_;
};

}  // namespace keel
