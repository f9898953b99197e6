// Interrupts: two within two seconds mean that somebody does not want to wait.
#include "elastic/process/interrupts.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(Interrupts, AreTwoWithinTwoSecondsOnly) {
  const TimePoint start = RealClock().Monotonic();
  Interrupts interrupts;
  EXPECT_FALSE(interrupts.IsSecond(start));
  EXPECT_FALSE(interrupts.IsSecond(start + std::chrono::milliseconds(2001)));
  EXPECT_FALSE(interrupts.IsSecond(start + std::chrono::seconds(600)));
  EXPECT_TRUE(interrupts.IsSecond(start + std::chrono::seconds(602)));
}

}  // namespace
}  // namespace keel
