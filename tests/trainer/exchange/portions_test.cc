// Portions of a state that grow and shrink with the time that is left for them.
#include "trainer/exchange/portions.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace keel {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::vector<uint64_t> Parts(size_t count, uint64_t bytes) {
  return std::vector<uint64_t>(count, bytes);
}

uint64_t NextBytes(const Portions& portions, uint64_t part) {
  return (portions.Next().end - portions.Next().begin) * part;
}

TEST(Portions, CoverAllPartsOnceInOrder) {
  Portions portions({5, 0, 700, 3, 3, 3, 10'000, 1}, 100);
  size_t next = 0;
  while (!portions.done()) {
    const Portions::Range range = portions.Next();
    ASSERT_EQ(range.begin, next);
    ASSERT_LT(range.begin, range.end);
    next = range.end;
    portions.Note(kSecond, kSecond);
  }
  EXPECT_EQ(next, 8u);
  EXPECT_TRUE(portions.Next().empty());
  EXPECT_EQ(portions.bytes_sent(), portions.bytes());
}

TEST(Portions, GrowWhileThereIsTime) {
  Portions portions(Parts(10'000, 10), 100);
  EXPECT_GE(NextBytes(portions, 10), 3120u) << "a thirty-second of all, at least";
  Portions larger(Parts(100'000, 10), 40'000);
  for (const uint64_t bytes : {40'000u, 80'000u}) {
    EXPECT_EQ(NextBytes(larger, 10), bytes);
    larger.Note(kSecond / 10, kSecond);
  }
  larger.Note(kSecond / 2, kSecond);
  EXPECT_EQ(NextBytes(larger, 10), 160'000u) << "as much as before";
}

TEST(Portions, ShrinkWhereSendingTookTooLong) {
  Portions portions(Parts(100'000, 10), 200'000);
  portions.Note(kSecond, kSecond);
  EXPECT_EQ(NextBytes(portions, 10), 100'000u);
  for (int i = 0; i < 2; ++i) portions.Note(kSecond, kSecond);
  EXPECT_EQ(NextBytes(portions, 10), 31'260u) << "a thirty-second of all";
  EXPECT_FALSE(portions.is_slow());
  for (int i = 0; i < 8; ++i) portions.Note(kSecond, kSecond);
  EXPECT_EQ(NextBytes(portions, 10), 1960u) << "a 512th of all";
  EXPECT_TRUE(portions.is_slow());
}

// 12 GB over a link of 1 Gbit/s, beside steps of a second.
TEST(Portions, SoonLeaveNobodyWaitingForASlowLink) {
  constexpr uint64_t kPart = 1'000'000;
  Portions portions(Parts(12'000, kPart), 4'000'000);
  uint64_t steps = 0;
  int64_t waited_ns = 0;
  for (; !portions.done(); ++steps) {
    const int64_t sent_ns = static_cast<int64_t>(NextBytes(portions, kPart)) * 8;
    waited_ns += std::max<int64_t>(sent_ns - kSecond, 0);
    portions.Note(sent_ns, kSecond);
    EXPECT_EQ(portions.is_slow(), steps >= 2) << steps;
    if (steps == 2) {
      EXPECT_EQ(steps + 1 + portions.steps_left(), 124u);
    }
  }
  EXPECT_EQ(steps, 124u);
  EXPECT_LT(waited_ns, 3 * kSecond);
}

TEST(Portions, EndWithinSoManySteps) {
  for (const size_t count : {1u, 2u, 31u, 32u, 33u, 1000u, 10'000u}) {
    for (const int64_t sent_ns : {kSecond / 2, kSecond}) {   // in time, and late
      Portions portions(Parts(count, 1000), 1);
      uint64_t steps = 0;
      for (; !portions.done(); ++steps) portions.Note(sent_ns, kSecond);
      EXPECT_LE(steps, sent_ns == kSecond ? Portions::kStepsMax : Portions::kStepsUsual) << count;
    }
  }
}

// So small ones may well have the time.
TEST(Portions, ALargePartThatIsLateMakesTheOthersNoSmaller) {
  std::vector<uint64_t> parts = Parts(1000, 1000);
  parts[0] = 1'000'000;
  Portions portions(parts, 1);
  portions.Note(kSecond, kSecond);
  EXPECT_EQ(NextBytes(portions, 1000), 63'000u) << "a thirty-second of all";
}

TEST(Portions, OfAPartThatIsLargeArePart) {
  Portions portions({10, 1'000'000, 10}, 100);
  portions.Note(0, kSecond);
  EXPECT_EQ(portions.bytes_sent(), 1'000'010u) << "it is sent whole";
}

TEST(Portions, KnowHowLongTheRestTakes) {
  Portions portions(Parts(100, 1'000'000), 10'000'000);
  EXPECT_EQ(portions.rest_ns(), 2 * kSecond) << "as if over a slow link";
  portions.Note(kSecond / 10, kSecond);
  EXPECT_EQ(portions.rest_ns(), kSecond * 9 / 10);
  portions.TakeAll();
  EXPECT_EQ(portions.rest_ns(), 0);
}

TEST(Portions, OfNothingAreDone) {
  EXPECT_TRUE(Portions({}, 100).done());
  Portions portions({5, 5}, 1);
  portions.TakeAll();
  EXPECT_TRUE(portions.done());
}

}  // namespace
}  // namespace keel
