// Signals that ask to stop or to save are wishes; an impatient one ends the program.
#include "elastic/process/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>

#include "base/clock.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

// Until the thread that reads signals has taken it.
bool Comes(const std::function<bool()>& what) {
  const TimePoint deadline = RealClock().Monotonic() + std::chrono::seconds(30);
  while (!what()) {
    if (RealClock().Monotonic() >= deadline) return false;
    RealClock().SleepFor(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(Interrupts, AreTwoWithinTwoSecondsOnly) {
  const TimePoint start = RealClock().Monotonic();
  Interrupts interrupts;
  EXPECT_FALSE(interrupts.IsSecond(start));
  EXPECT_FALSE(interrupts.IsSecond(start + std::chrono::milliseconds(2001)));
  EXPECT_FALSE(interrupts.IsSecond(start + std::chrono::seconds(600)));
  EXPECT_TRUE(interrupts.IsSecond(start + std::chrono::seconds(602)));
}

TEST(StopSignals, ASignalIsAWishAndTheFirstOneNamesIt) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    ASSERT_OK_AND_ASSIGN(const auto signals, StopSignals::Open());
    EXPECT_FALSE(signals->stop().cancelled());
    EXPECT_EQ(signals->reason(), "");
    ASSERT_EQ(kill(getpid(), signal), 0);
    ASSERT_TRUE(Comes([&] { return signals->stop().cancelled(); }));
    const std::string reason = signals->reason();
    EXPECT_NE(reason, "");
    ASSERT_EQ(kill(getpid(), signal == SIGTERM ? SIGUSR1 : SIGTERM), 0);
    ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
    ASSERT_TRUE(Comes([&] { return signals->TakeSave(); }));
    EXPECT_EQ(signals->reason(), reason);
  }
}

TEST(StopSignals, ASaveIsAskedForOnce) {
  ASSERT_OK_AND_ASSIGN(const auto signals, StopSignals::Open());
  EXPECT_FALSE(signals->TakeSave());
  ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
  ASSERT_TRUE(Comes([&] { return signals->TakeSave(); }));
  EXPECT_FALSE(signals->TakeSave());
  EXPECT_FALSE(signals->stop().cancelled());
}

// Each of them: what is pending when the signals are let through again ends the program.
TEST(StopSignals, WhatCameBeforeItsEndIsAWish) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK_AND_ASSIGN(auto signals, StopSignals::Open());
    const CancelToken stop = signals->stop();
    ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
    ASSERT_EQ(kill(getpid(), SIGTERM), 0);
    signals.reset();
    EXPECT_TRUE(stop.cancelled());
  }
}

TEST(StopSignalsDeathTest, WhoInterruptsTwiceDoesNotWantToWait) {
  EXPECT_EXIT(
      {
        const auto signals = StopSignals::Open();
        kill(getpid(), SIGINT);
        Comes([&] { return (*signals)->stop().cancelled(); });
        kill(getpid(), SIGINT);
        Comes([] { return false; });
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace keel
