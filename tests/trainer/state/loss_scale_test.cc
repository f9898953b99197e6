// The loss scale halves at once and grows slowly, in powers of two.
#include "trainer/loss_scale.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(LossScale, HalvesAtOnceAndDoublesAfterManyGoodSteps) {
  LossScale scale{.scale = 1024, .growth_interval = 3};
  scale.After(false);
  EXPECT_EQ(scale.scale, 512);
  scale.After(true);
  scale.After(true);
  EXPECT_EQ(scale.scale, 512);
  scale.After(true);
  EXPECT_EQ(scale.scale, 1024);
  EXPECT_EQ(scale.good_steps, 0u);
}

TEST(LossScale, AnOverflowStartsTheCountAnew) {
  LossScale scale{.scale = 1024, .growth_interval = 2};
  scale.After(true);
  scale.After(false);
  scale.After(true);
  EXPECT_EQ(scale.scale, 512);
}

TEST(LossScale, StaysWithinItsLimits) {
  LossScale scale{.scale = 1, .growth_interval = 1};
  scale.After(false);
  EXPECT_EQ(scale.scale, LossScale::kMin);
  for (int i = 0; i < 100; ++i) scale.After(true);
  EXPECT_EQ(scale.scale, LossScale::kMax);
}

}  // namespace
}  // namespace keel
