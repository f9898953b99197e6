// Slice: which elements of a tensor are meant, in Python's words: "0:10, 3, ::2, -1".
// Promises   picks what numpy picks: a whole number takes its dimension away and must be in range;
//            ends beyond a dimension are cut; negative ones count from its end; a negative step
//            goes backwards; "..." stands for all dimensions that are not named; those missing at
//            the end are whole. Brackets around it all are taken off.
// Does not   know None, lists of indices or masks. Read tensors (tools/keel/element_walk.h).
// Threads    a plain value. Errors: kInvalid, naming the dimension and its size.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace keel {

// The elements along one dimension: first, first + step ...
struct AxisPick {
  uint64_t first = 0;
  int64_t step = 1;
  uint64_t count = 0;
  bool is_index = false;  // its dimension is not there in the result
};

// A row of elements by their index in the flattened tensor.
struct ElementRun {
  uint64_t first = 0;
  int64_t step = 1;
  uint64_t count = 0;
};

class Slice {
 public:
  // `shape` is that of a tensor (ckpt/layout.h): no dimension is negative. Empty text: all.
  static Result<Slice> Parse(std::string_view text, const std::vector<int64_t>& shape);

  // Of what is picked.
  std::vector<int64_t> shape() const;
  uint64_t count() const;
  // One for each dimension of the tensor.
  const std::vector<AxisPick>& picks() const { return picks_; }

 private:
  friend class SliceRuns;
  std::vector<AxisPick> picks_;
  std::vector<uint64_t> strides_;  // of the tensor's dimensions, in elements
};

// All picked elements in row-major order, one run along the last dimension after the other.
class SliceRuns {
 public:
  explicit SliceRuns(const Slice& slice);

  // False: there are no more.
  bool Next(ElementRun* run);

 private:
  const Slice& slice_;
  std::vector<uint64_t> at_;  // in each dimension but the last: how many were passed
  bool is_done_;
};

}  // namespace keel
