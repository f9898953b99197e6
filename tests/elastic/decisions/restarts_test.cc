// Restarts: how many failures are too many, and how long a seat waits that fails at once.
#include "elastic/decisions/restarts.h"

#include <gtest/gtest.h>

#include <vector>

namespace keel {
namespace {

using namespace std::chrono_literals;

TimePoint At(Duration since_start) { return TimePoint{since_start}; }

TEST(DecideRestart, GoesOnUpToTheLimitAndNotOneFurther) {
  const std::vector<TimePoint> failures = {At(1s), At(2s), At(3s)};
  const RestartDecision at_limit = DecideRestart(failures, {3, 0s}, At(4s));
  EXPECT_TRUE(at_limit.go_on);
  EXPECT_EQ(at_limit.spent, 3);
  EXPECT_EQ(at_limit.reason, "3 failures, 3 allowed");
  const RestartDecision beyond = DecideRestart(failures, {2, 0s}, At(4s));
  EXPECT_FALSE(beyond.go_on);
  EXPECT_EQ(beyond.again, kNever);   // without a window nothing is ever forgotten
}

TEST(DecideRestart, WithoutFailuresEvenNoRestartsAreEnough) {
  const RestartDecision decision = DecideRestart({}, {0, 0s}, At(1s));
  EXPECT_TRUE(decision.go_on);
  EXPECT_EQ(decision.reason, "0 failures, 0 allowed");
  EXPECT_FALSE(DecideRestart(std::vector{At(1s)}, {0, 0s}, At(1s)).go_on);
}

TEST(DecideRestart, TheWindowIsOpenAtItsFarEnd) {
  const std::vector<TimePoint> failures = {At(10s)};
  EXPECT_EQ(DecideRestart(failures, {0, 5s}, At(15s) - 1ns).spent, 1);
  EXPECT_EQ(DecideRestart(failures, {0, 5s}, At(15s)).spent, 0);
}

TEST(DecideRestart, SaysWhenEnoughWillBeForgotten) {
  // Out of order: 4 within the window, 2 allowed, so the second oldest has to go.
  const std::vector<TimePoint> failures = {At(13s), At(10s), At(12s), At(11s)};
  const RestartDecision decision = DecideRestart(failures, {2, 10s}, At(14s));
  EXPECT_FALSE(decision.go_on);
  EXPECT_EQ(decision.again, At(21s));
  EXPECT_EQ(decision.reason, "4 failures in the last 10 s, 2 allowed");
  EXPECT_TRUE(DecideRestart(failures, {2, 10s}, decision.again).go_on);
  EXPECT_FALSE(DecideRestart(failures, {2, 10s}, decision.again - 1ns).go_on);
}

TEST(RestartDelay, DoublesUpToItsLimit) {
  const std::vector<Duration> wanted = {0s, 0s, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5s, 5s};
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(RestartDelay(static_cast<int>(i)), wanted[i]) << i;
  }
  EXPECT_EQ(RestartDelay(1'000'000'000), 5s);
}

}  // namespace
}  // namespace keel
