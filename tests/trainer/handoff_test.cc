// Two threads that work in turn.
#include "trainer/handoff.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "base/random.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using IntHandoff = Handoff<int, int>;

constexpr Duration kAtOnce{0};
constexpr Duration kLimit = std::chrono::seconds(60);

TEST(Handoff, EachTaskIsTakenAndAnsweredOnce) {
  IntHandoff handoff;
  int64_t sum = 0;
  std::thread engine([&] {
    for (int i = 1; i <= 10000; ++i) {
      const Result<int> answer = handoff.Ask(i);
      sum += answer.ok() ? *answer : -1000000;
    }
    handoff.End();
  });
  int64_t asked = 0;
  for (;;) {
    const auto taken = handoff.Next(kLimit);
    ASSERT_OK(taken);
    if (taken->ended) break;
    ASSERT_TRUE(taken->task.has_value());
    EXPECT_EQ(*taken->task, ++asked);
    ASSERT_OK(handoff.Reply(2 * *taken->task));
  }
  engine.join();
  EXPECT_EQ(asked, 10000);
  EXPECT_EQ(sum, 10000LL * 10001);
}

TEST(Handoff, NobodyAskedWithinTheLimit) {
  IntHandoff handoff;
  ASSERT_OK_AND_ASSIGN(const auto taken, handoff.Next(kAtOnce));
  EXPECT_FALSE(taken.task.has_value());
  EXPECT_FALSE(taken.ended);
}

TEST(Handoff, CallsOutOfTurnAreRefused) {
  IntHandoff handoff;
  EXPECT_EQ(handoff.Reply(1).error().code, Code::kInvalid);
  std::thread engine([&] { EXPECT_OK(handoff.Ask(1)); });
  ASSERT_OK_AND_ASSIGN(const auto taken, handoff.Next(kLimit));
  EXPECT_TRUE(taken.task.has_value());
  EXPECT_EQ(handoff.Next(kAtOnce).error().code, Code::kInvalid);
  EXPECT_OK(handoff.Reply(1));
  engine.join();
  EXPECT_EQ(handoff.Reply(1).error().code, Code::kInvalid);
}

TEST(Handoff, AFailureEndsTheQuestionThatWaitsAndAllLaterOnes) {
  IntHandoff handoff;
  std::thread engine([&] {
    for (int i = 0; i < 2; ++i) {
      const Result<int> answer = handoff.Ask(i);
      ASSERT_FALSE(answer.ok());
      EXPECT_EQ(answer.error().code, Code::kForeign);
      EXPECT_EQ(answer.error().message, "no more");
    }
  });
  ASSERT_OK(handoff.Next(kLimit));
  handoff.Fail("no more");
  handoff.Fail("much less");
  EXPECT_EQ(handoff.Reply(1).error().message, "no more");
  engine.join();
  ASSERT_OK_AND_ASSIGN(const auto taken, handoff.Next(kAtOnce));
  EXPECT_FALSE(taken.ended);
  handoff.End();
  EXPECT_TRUE(handoff.Next(kAtOnce)->ended);
}

TEST(Handoff, AFailureAtAnyMomentEndsBoth) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    IntHandoff handoff;
    std::thread engine([&] {
      while (handoff.Ask(1).ok()) {
      }
      handoff.End();
    });
    const uint64_t tasks = random.Uniform(20);
    for (uint64_t i = 0; i < tasks; ++i) {
      ASSERT_OK(handoff.Next(kLimit));
      if (i + 1 < tasks || random.Chance(0.5)) {
        ASSERT_OK(handoff.Reply(1));
      }
    }
    handoff.Fail("enough");
    for (bool ended = false; !ended;) {
      ASSERT_OK_AND_ASSIGN(const auto taken, handoff.Next(kLimit));
      ended = taken.ended;
    }
    engine.join();
  }
}

}  // namespace
}  // namespace keel
