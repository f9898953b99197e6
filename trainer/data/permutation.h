// Permutation: the order of one epoch of data; any place can be asked for, and no table is kept.
// Promises   a permutation of 0 .. size-1, fixed by seed, epoch and size, the same on every
//            machine for ever (golden tests hold it); other epochs have unrelated orders. O(1)
//            memory, under two rounds through the network per place on average.
// Does not   serve cryptography.
// Threads    a plain value: const methods from any thread.
#pragma once

#include <array>
#include <cstdint>

namespace keel {

class Permutation {
 public:
  struct Key {
    uint64_t seed = 0;
    uint64_t data_epoch = 0;
    uint64_t size = 0;
  };
  explicit Permutation(const Key& key);

  uint64_t size() const { return size_; }
  // The sample at `place`; a place that is not below size() is a bug of ours.
  uint64_t operator()(uint64_t place) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t Encrypt(uint64_t value) const;

  uint64_t size_;
  int low_bits_;   // the two halves of a number below the next power of two
  int high_bits_;
  std::array<uint64_t, kRounds> round_keys_;
};

}  // namespace keel
