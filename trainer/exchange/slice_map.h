// SliceMap: which part of a flat tensor each worker of a group adds up, and passes on as the mean.
// Promises   every element lies in one slice. Slices differ by one block at most, and begin at
//            whole blocks, so that additions work on whole cache lines.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace keel {

struct Slice {
  int64_t begin = 0;
  int64_t count = 0;

  bool operator==(const Slice&) const = default;
};

class SliceMap {
 public:
  static constexpr int64_t kBlock = 64;   // elements

  SliceMap(int64_t elements, int world) : elements_(elements), world_(world) {}

  Slice Of(int rank) const;
  // That slice in pieces of at most so many elements, which travel and are added one by one.
  std::vector<Slice> ChunksOf(int rank, int64_t most) const;

 private:
  int64_t Begin(int rank) const;

  int64_t elements_;
  int world_;
};

}  // namespace keel
