// TensorDifference: in which elements two tensors differ that should hold the same bits.
// Promises   bits are compared, not values: NaN equals itself, and 0 is not -0.
// Threads    pure functions.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

namespace keel {

struct TensorDifference {
  int64_t differ = 0;                  // elements
  int64_t all = 0;
  std::vector<int64_t> first = {};     // the index of the first one
  std::string a = {};                  // what is there
  std::string b = {};
  double largest = 0;                  // of all distances
};

// Two tensors on the CPU, of one type and shape.
TensorDifference DifferenceOf(const at::Tensor& a, const at::Tensor& b);

// "1 of 4096 elements, the first at [3, 12]: 0.25 and 0.5, at most 0.25 apart"
std::string DifferenceText(const TensorDifference& difference);

}  // namespace keel
