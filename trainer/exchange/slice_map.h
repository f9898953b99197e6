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

  // `turn`: each worker has the slice of the one that comes so much later.
  SliceMap(int64_t elements, int world, int turn = 0)
      : elements_(elements), world_(world), turn_(turn) {}

  Slice Of(int rank) const;
  // That slice in pieces of at most so many elements, which travel and are added one by one.
  std::vector<Slice> ChunksOf(int rank, int64_t most) const;

 private:
  int64_t Begin(int number) const;

  int64_t elements_;
  int world_;
  int turn_;
};

}  // namespace keel
