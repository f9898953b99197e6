// What the clocks promise.
#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace keel {
namespace {

using namespace std::chrono_literals;

TEST(RealClock, SleepsUntilTheTimeAskedForHasCome) {
  Clock& clock = RealClock();
  const TimePoint wanted = clock.Monotonic() + 5ms;
  clock.SleepUntil(wanted);
  EXPECT_GE(clock.Monotonic(), wanted);
}

TEST(ManualClock, StandsStillUntilItIsAdvanced) {
  ManualClock clock;
  const TimePoint start = clock.Monotonic();
  EXPECT_EQ(clock.Monotonic(), start);
  clock.Advance(3s);
  EXPECT_EQ(clock.Monotonic() - start, 3s);
}

TEST(ManualClock, WakesASleeperWhenItsTimeHasCome) {
  ManualClock clock;
  const TimePoint wanted = clock.Monotonic() + 10s;
  std::thread sleeper([&] { clock.SleepUntil(wanted); });
  clock.Advance(4s);
  clock.Advance(6s);
  sleeper.join();
  EXPECT_EQ(clock.Monotonic(), wanted);
}

TEST(DurationText, ReadsAsPeopleSayIt) {
  EXPECT_EQ(DurationText(250us), "250 us");
  EXPECT_EQ(DurationText(12ms), "12 ms");
  EXPECT_EQ(DurationText(1500ms), "1.5 s");
  EXPECT_EQ(DurationText(200s), "3 min 20 s");
  EXPECT_EQ(DurationText(3h + 5min), "3 h 5 min");
  EXPECT_EQ(DurationText(2'500'000h), "2500000 h 0 min") << "285 years are no less";
}

TEST(Clock, WallTimeIsWrittenInUtc) {
  EXPECT_EQ(UtcText(1'790'000'000'000'000'000), "2026-09-21T14:13:20Z");
  EXPECT_EQ(TimeOfDayText(1'790'000'000'000'000'000), "14:13:20");
}

TEST(DurationText, WhatIsNearlyAWholeUnitIsOne) {
  EXPECT_EQ(DurationText(999'400us), "999 ms");
  EXPECT_EQ(DurationText(999'600us), "1 s");
  EXPECT_EQ(DurationText(999'400ns), "999 us");
  EXPECT_EQ(DurationText(999'600ns), "1 ms");
  EXPECT_EQ(DurationText(59'990ms), "60 s");
}

}  // namespace
}  // namespace keel
