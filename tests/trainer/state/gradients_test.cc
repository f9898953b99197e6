// Norms and factors of gradients.
#include "trainer/state/gradients.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace keel {
namespace {

std::vector<at::Tensor> SomeGradients() {
  at::manual_seed(3);
  return {at::randn({301, 257}), at::randn({7}), at::randn({4, 5, 3, 3}), at::randn({0})};
}

TEST(GlobalNorm, IsTheNormOfAllElementsTogether) {
  const std::vector<at::Tensor> gradients = SomeGradients();
  double squares = 0;
  for (const at::Tensor& gradient : gradients) {
    squares += gradient.to(at::kDouble).square().sum().item<double>();
  }
  EXPECT_NEAR(GlobalNorm(gradients), std::sqrt(squares), 1e-12 * std::sqrt(squares));
  EXPECT_EQ(GlobalNorm({}), 0);
}

TEST(GlobalNorm, TakesComplexNumbersAsPairs) {
  const at::Tensor pairs = at::randn({50, 2});
  EXPECT_EQ(GlobalNorm({at::view_as_complex(pairs)}), GlobalNorm({pairs}));
}

TEST(GlobalNorm, HasTheSameBitsForAnyNumberOfThreads) {
  const std::vector<at::Tensor> gradients = SomeGradients();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double alone = GlobalNorm(gradients);
  at::set_num_threads(4);
  EXPECT_EQ(GlobalNorm(gradients), alone);
  at::set_num_threads(threads);
}

TEST(GlobalNorm, OverflowsForNoFiniteFloat) {
  EXPECT_TRUE(std::isfinite(GlobalNorm({at::full({100}, std::numeric_limits<float>::max())})));
}

TEST(GlobalNorm, IsNotFiniteWhereAGradientIsNot) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<at::Tensor> gradients = SomeGradients();
    gradients[2].view({-1})[17] = bad;
    EXPECT_FALSE(std::isfinite(GlobalNorm(gradients))) << bad;
  }
}

TEST(GlobalNorm, ReadsHalfPrecisionAndChannelsLast) {
  const at::Tensor twos = at::full({2, 3, 4, 4}, 2.0);
  EXPECT_EQ(GlobalNorm({twos.to(at::kBFloat16)}), std::sqrt(4.0 * 96));
  EXPECT_EQ(GlobalNorm({twos.contiguous(at::MemoryFormat::ChannelsLast)}), std::sqrt(4.0 * 96));
}

TEST(ClipFactor, BringsLargeNormsDownAndLeavesSmallOnesAlone) {
  EXPECT_EQ(ClipFactor(0.5, 1), 1);
  EXPECT_NEAR(ClipFactor(10, 1), 0.1, 1e-7);
  std::vector<at::Tensor> gradients = SomeGradients();
  ScaleInPlace(gradients, ClipFactor(GlobalNorm(gradients), 2));
  EXPECT_NEAR(GlobalNorm(gradients), 2, 1e-5);
}

}  // namespace
}  // namespace keel
