// ValueLines: elements as lines of text, laid out by the shape that they have together.
// Promises   one row of the last dimension a line, values apart by a blank; a tensor of one
//            dimension one value a line, as numpy.savetxt() does. Between matrices, and again
//            between blocks of matrices, an empty line, which numpy.loadtxt() passes over.
// Threads    one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ckpt/dtype.h"

namespace keel {

class ValueLines {
 public:
  ValueLines(Dtype dtype, const std::vector<int64_t>& shape);

  // The next elements, in row-major order.
  void Append(std::span<const std::byte> elements, std::string* to);

 private:
  const Dtype dtype_;
  uint64_t width_ = 1;             // elements in a line
  std::vector<uint64_t> blocks_;   // elements after which an empty line comes, from matrices up
  uint64_t done_ = 0;
};

}  // namespace keel
