// TensorDifference: in which elements tensors differ, bit by bit.
#include "trainer/numerics/tensor_difference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/flip_bit.h"

namespace keel {
namespace {

std::string TextOf(const at::Tensor& a, const at::Tensor& b) {
  return DifferenceText(DifferenceOf(a, b));
}

TEST(TensorDifference, NamesTheFirstAndTheLargest) {
  const at::Tensor a = at::zeros({3, 4});
  const at::Tensor b = a.clone();
  b[1][2] = 0.5f;
  b[2][0] = -2.f;
  EXPECT_EQ(TextOf(a, b), "2 of 12 elements, the first at [1, 2]: 0 and 0.5, at most 2 apart");
  EXPECT_EQ(DifferenceOf(a, a.clone()).differ, 0);
  EXPECT_EQ(DifferenceOf(a, a.clone()).all, 12);
}

TEST(TensorDifference, ComparesBitsAndNotValues) {
  const at::Tensor nan = at::full({2}, std::nan(""));
  EXPECT_EQ(DifferenceOf(nan, nan.clone()).differ, 0);
  const at::Tensor zero = at::zeros({1});
  EXPECT_EQ(TextOf(zero, -zero), "1 of 1 element, the first at [0]: 0 and -0, at most 0 apart");
  EXPECT_EQ(DifferenceOf(zero, at::full({1}, std::nan(""))).differ, 1);
}

TEST(TensorDifference, EveryBitOfEveryTypeCounts) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt,
                                    at::kLong, at::kByte, at::kComplexFloat}) {
    const at::Tensor a = at::ones({5}, type);
    const uint64_t bits = static_cast<uint64_t>(a.nbytes()) * 8;
    for (uint64_t bit = 0; bit < bits; ++bit) {
      const at::Tensor b = a.clone();
      FlipBitOf(b, bit);
      const TensorDifference difference = DifferenceOf(a, b);
      EXPECT_EQ(difference.differ, 1) << type << " " << bit;
      EXPECT_EQ(difference.first.size(), 1u);
      EXPECT_NE(DifferenceText(difference), "");
    }
  }
}

TEST(TensorDifference, OfAnyLayoutAndOfScalars) {
  const at::Tensor a = at::arange(6, at::kFloat).view({2, 3}).t();
  const at::Tensor b = a.clone();
  b[2][1] = 7;
  EXPECT_EQ(DifferenceOf(a, b).first, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(TextOf(at::scalar_tensor(1.0), at::scalar_tensor(2.0)),
            "1 of 1 element, the first at []: 1 and 2, at most 1 apart");
  EXPECT_EQ(DifferenceOf(at::empty({0, 3}), at::empty({0, 3})).differ, 0);
}

}  // namespace
}  // namespace keel
