// Whether a stop's save fits: by measured speeds, and the same for all.
#include "trainer/save/fit.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMegabyte = 1'000'000;

TEST(SaveSpeed, NothingIsExpectedBeforeASave) {
  SaveSpeed speed;
  EXPECT_EQ(speed.Expect(kMegabyte), std::nullopt);
  speed.OnCommitted(1s);
  speed.OnWritten(0, 1s, true);
  EXPECT_EQ(speed.Expect(kMegabyte), std::nullopt);
}

TEST(SaveSpeed, GrowsWithTheBytesAndAddsTheCommit) {
  SaveSpeed speed;
  speed.OnWritten(kMegabyte, 2s, true);
  EXPECT_EQ(speed.Expect(3 * kMegabyte), 6s);
  speed.OnCommitted(500ms);
  speed.OnCommitted(700ms);
  EXPECT_EQ(speed.Expect(3 * kMegabyte), 6500ms);
}

TEST(SaveSpeed, TheFastestCounts) {
  SaveSpeed speed;
  speed.OnWritten(kMegabyte, 4s, true);
  speed.OnWritten(kMegabyte, 2s, true);
  speed.OnWritten(kMegabyte, 9s, true);
  EXPECT_EQ(speed.Expect(kMegabyte), 2s);
}

TEST(SaveSpeed, OnesBesideTrainingAreSlowerThanOneThatIsWaitedFor) {
  SaveSpeed speed;
  speed.OnWritten(kMegabyte, 8s, false);
  EXPECT_EQ(speed.Expect(kMegabyte), 4s);
  speed.OnWritten(kMegabyte, 6s, true);
  EXPECT_EQ(speed.Expect(kMegabyte), 6s) << "measured, not guessed";
  speed.OnWritten(kMegabyte, 5s, false);
  EXPECT_EQ(speed.Expect(kMegabyte), 5s);
}

TEST(StopSave, WithoutALimitOrASpeedItIsTried) {
  EXPECT_EQ(DecideStopSave({{}, {}}).what, StopSave::kSave);
  EXPECT_EQ(DecideStopSave({{.left = 1s}, {}}).what, StopSave::kSave);
  EXPECT_EQ(DecideStopSave({{.needs = 100s}, {}}).what, StopSave::kSave);
}

TEST(StopSave, WhatFitsIsDone) {
  EXPECT_EQ(DecideStopSave({{.left = 10s, .needs = 10s}}).what, StopSave::kSave);
  EXPECT_EQ(DecideStopSave({{.left = 10s, .needs = 10s + 1ns}}).what, StopSave::kLeave);
}

TEST(StopSave, TheSlowestMeetsTheOneWhoMustGoFirst) {
  const StopDecision decision = DecideStopSave(
      {{.left = 115s, .needs = 3s}, {.needs = 40s}, {.left = 25s, .needs = 2s}});
  EXPECT_EQ(decision.what, StopSave::kLeave);
  EXPECT_EQ(decision.left, 25s);
  EXPECT_EQ(decision.needs, 40s);
}

TEST(StopSave, ADeadlineThatHasPassedLeavesNothing) {
  const StopDecision decision = DecideStopSave({{.left = -5s, .needs = 1ns}});
  EXPECT_EQ(decision.what, StopSave::kLeave);
  EXPECT_EQ(decision.left, 0s);
}

TEST(StopSave, OneUnderWayIsFinishedWhereAllAreAtIt) {
  const auto what = [](SaveState first, SaveState second) {
    return DecideStopSave({{.state = first, .left = 1s, .needs = 2s}, {.state = second}}).what;
  };
  EXPECT_EQ(what(SaveState::kWriting, SaveState::kDurable), StopSave::kFinish);
  EXPECT_EQ(what(SaveState::kDurable, SaveState::kDurable), StopSave::kFinish);
  for (const SaveState other : {SaveState::kIdle, SaveState::kFailed, SaveState::kCommitting}) {
    EXPECT_EQ(what(SaveState::kWriting, other), StopSave::kLeave);
    EXPECT_EQ(what(other, SaveState::kDurable), StopSave::kLeave);
  }
}

TEST(StopSave, TheOrderOfRanksDecidesNothing) {
  std::vector<StopVote> votes = {{.state = SaveState::kWriting, .left = 9s, .needs = 8s},
                                 {.state = SaveState::kDurable, .left = 7s},
                                 {.state = SaveState::kWriting, .needs = 6s}};
  const auto by_left = [](const StopVote& a, const StopVote& b) { return a.left < b.left; };
  std::sort(votes.begin(), votes.end(), by_left);
  do {
    EXPECT_EQ(DecideStopSave(votes).what, StopSave::kFinish);
    EXPECT_EQ(DecideStopSave(votes).needs, 8s);
  } while (std::next_permutation(votes.begin(), votes.end(), by_left));
}

}  // namespace
}  // namespace keel
