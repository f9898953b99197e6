// Hangs: who is named, and when.
#include "elastic/hangs.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr HangLimits kLimits = {30s, 10s};
constexpr TimePoint kMoved{100s};

TEST(HangLimit, IsWhatWasAskedForOrTwentySteps) {
  EXPECT_EQ(HangLimit(5s, 1h), 5s);
  EXPECT_EQ(HangLimit(std::nullopt, 0s), 60s);
  EXPECT_EQ(HangLimit(std::nullopt, 3s), 60s);
  EXPECT_EQ(HangLimit(std::nullopt, 4s), 80s);
}

TEST(DecideHang, NamesThoseFurthestBehindAtTheLimitAndNotBefore) {
  const std::vector<RankPosition> positions = {{0, {7, 1}}, {1, {7, 0}}, {2, {8, 0}}, {3, {7, 0}}};
  const HangDecision early = DecideHang(positions, kMoved, kLimits, kMoved + 10s - 1ns);
  EXPECT_TRUE(early.ranks.empty());
  EXPECT_EQ(early.until, kMoved + 10s);
  const HangDecision late = DecideHang(positions, kMoved, kLimits, kMoved + 10s);
  EXPECT_EQ(late.ranks, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(late.reason,
            "nothing moved for 10 s; at step 7, phase 0, are ranks 1 3; the first is at step 8");
}

TEST(DecideHang, NamesAllWhereNobodyIsBehind) {
  const HangDecision decision =
      DecideHang({{0, {7, 0}}, {1, {7, 0}}}, kMoved, kLimits, kMoved + 10s);
  EXPECT_EQ(decision.ranks, (std::vector<int64_t>{0, 1}));
}

// A worker that hangs before it meets the others would else hold them up for ever.
TEST(DecideHang, NamesThoseThatToldNothingAfterALimitOfTheirOwn) {
  const std::vector<RankPosition> positions = {{0, {7, 0}}, {1, {-1, 0}}, {2, {-1, 3}}};
  EXPECT_TRUE(DecideHang(positions, kMoved, kLimits, kMoved + 30s - 1ns).ranks.empty());
  const HangDecision late = DecideHang(positions, kMoved, kLimits, kMoved + 30s);
  EXPECT_EQ(late.ranks, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(late.reason, "nothing moved for 30 s; no position of this epoch was told by ranks 1 2; "
                         "the first is at step 7");
}

TEST(DecideHang, WithoutWorkersNobodyHangs) {
  const HangDecision decision = DecideHang({}, kMoved, kLimits, kMoved + 1h);
  EXPECT_TRUE(decision.ranks.empty());
  EXPECT_EQ(decision.until, kNever);
}

}  // namespace
}  // namespace keel
