// A digest sees every bit, and only bits.
#include "trainer/numerics/tensor_digest.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(TensorDigest, SameBitsGiveTheSameDigest) {
  const at::Tensor a = at::arange(12, at::kFloat).reshape({3, 4});
  EXPECT_EQ(DigestOfTensors({a}), DigestOfTensors({a.clone()}));
}

TEST(TensorDigest, SeesASingleFlippedBit) {
  const at::Tensor a = at::zeros({5});
  at::Tensor b = at::zeros({5});
  b[3] = -0.0f;  // equal as a number, another sign bit
  ASSERT_TRUE(at::equal(a, b));
  EXPECT_NE(DigestOfTensors({a}), DigestOfTensors({b}));
}

TEST(TensorDigest, SeesTypeShapeAndOrder) {
  const at::Tensor a = at::zeros({4});
  const at::Tensor b = at::ones({4});
  EXPECT_NE(DigestOfTensors({a}), DigestOfTensors({a.reshape({2, 2})}));
  EXPECT_NE(DigestOfTensors({at::zeros({4}, at::kInt)}), DigestOfTensors({a}));
  EXPECT_NE(DigestOfTensors({a, b}), DigestOfTensors({b, a}));
  EXPECT_NE(DigestOfTensors({a}), DigestOfTensors({a, at::zeros({0})}));
}

TEST(TensorDigest, ReadsAViewAsIfItWereContiguous) {
  const at::Tensor a = at::arange(12, at::kFloat).reshape({3, 4});
  EXPECT_EQ(DigestOfTensors({a.t()}), DigestOfTensors({a.t().contiguous()}));
}

}  // namespace
}  // namespace keel
