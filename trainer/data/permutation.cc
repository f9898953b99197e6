// A Feistel network over the numbers below the next power of two. A result that is no place of this
// epoch goes through it again until it is one (cycle walking).
#include "trainer/data/permutation.h"

#include <bit>

#include "base/check.h"
#include "trainer/numerics/mix.h"

namespace keel {
namespace {

constexpr uint64_t kOrder = 0x726564726F;  // "order": keeps it apart from other draws from the seed

uint64_t LowBits(uint64_t value, int bits) { return value & ((uint64_t{1} << bits) - 1); }

}  // namespace

Permutation::Permutation(const Key& key) : size_(key.size) {
  KEEL_CHECK(key.size > 0 && key.size <= uint64_t{1} << 62, "size " << key.size);
  const int bits = std::bit_width(key.size - 1);
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t words[] = {kOrder, key.seed, key.data_epoch, round};
    round_keys_[round] = Mix(words);
  }
}

// Each round changes one half by a function of the other half, so it can be undone: one to one.
uint64_t Permutation::Encrypt(uint64_t value) const {
  uint64_t low = LowBits(value, low_bits_);
  uint64_t high = value >> low_bits_;
  for (int round = 0; round < kRounds; round += 2) {
    const uint64_t from_low[] = {round_keys_[round], low};
    high ^= LowBits(Mix(from_low), high_bits_);
    const uint64_t from_high[] = {round_keys_[round + 1], high};
    low ^= LowBits(Mix(from_high), low_bits_);
  }
  return high << low_bits_ | low;
}

uint64_t Permutation::operator()(uint64_t place) const {
  KEEL_CHECK(place < size_, "place " << place << " of " << size_);
  // More than half of all numbers are places, so this ends soon. It always ends, since the walk
  // comes back to `place` at the latest.
  uint64_t walked = Encrypt(place);
  while (walked >= size_) walked = Encrypt(walked);
  return walked;
}

}  // namespace keel
