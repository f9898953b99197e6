// Whereabouts: what is told of a worker that computes, waits itself, or lets another thread wait.
#include "trainer/group/whereabouts.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace keel {
namespace {

TEST(Whereabouts, PositionsRiseAndAreToldAsTheyDo) {
  std::vector<Position> told;
  Whereabouts where([&](const Whereabouts::Now& now) { told.push_back(now.position); });
  where.BeginEpoch(3);
  where.Tick();
  where.At(3, Phase::kMeeting);   // still: a tick
  where.At(60, Phase::kEvaluating);
  where.At(60, Phase::kSaving);
  where.At(60, Phase::kComputing);
  where.At(60, Phase::kVoting);
  where.At(60, Phase::kApplying);
  where.At(61, Phase::kEvaluating);
  where.At(61, Phase::kParked);
  ASSERT_EQ(told.size(), 10u);
  for (size_t i = 1; i < told.size(); ++i) EXPECT_LT(told[i - 1], told[i]) << i;
  where.BeginEpoch(2);
  EXPECT_EQ(told.back(), (Position{2, 0})) << "the next epoch begins anew";
}

TEST(Whereabouts, WhatIsComputedForTheFirstTimeMovesAsLongAsAStartMayTake) {
  Whereabouts where;
  const auto moves = [&] {
    const Position before = where.LookAgain().position;
    return before < where.LookAgain().position;
  };
  where.BeginEpoch(0);
  EXPECT_FALSE(moves()) << "it meets others";
  where.At(0, Phase::kComputing);
  EXPECT_TRUE(moves());
  {
    const Whereabouts::Waiting waiting(where, 1);
    EXPECT_FALSE(moves()) << "the other one may hang";
  }
  where.BeginEpoch(0);   // the epoch has broken
  where.At(0, Phase::kComputing);
  EXPECT_TRUE(moves()) << "it has not come to the end";
  where.At(0, Phase::kVoting);
  EXPECT_FALSE(moves());
  where.At(1, Phase::kComputing);
  EXPECT_FALSE(moves()) << "it has computed before";
  where.At(20, Phase::kEvaluating);
  for (int i = 0; i < 600 * 4; ++i) (void)where.LookAgain();
  EXPECT_FALSE(moves()) << "not for ever";
}

TEST(WhereaboutsDeathTest, APositionThatFallsIsABugOfOurs) {
  Whereabouts where;
  where.At(5, Phase::kVoting);
  EXPECT_DEATH(where.At(5, Phase::kComputing), "step 5");
  EXPECT_DEATH(where.At(4, Phase::kApplying), "step 4");
}

TEST(Whereabouts, APlaceIsToldWithItsPhaseUntilThePositionChanges) {
  Whereabouts where;
  where.BeginEpoch(0);
  where.At(0, Phase::kComputing);
  EXPECT_EQ(where.Look().activity, (Activity{"computing", Activity::kNobody}));
  where.Place("lane 3, forward");
  EXPECT_EQ(where.Look().activity, (Activity{"computing, lane 3, forward", Activity::kNobody}));
  where.At(0, Phase::kVoting);
  EXPECT_EQ(where.Look().activity, (Activity{"voting", Activity::kNobody}));
}

TEST(Whereabouts, TheTrainingThreadWaitsWhileItSaysSo) {
  Whereabouts where;
  where.BeginEpoch(0);
  {
    const Whereabouts::Waiting outer(where, 1);
    EXPECT_EQ(where.Look().activity.waits_for, 1);
    const Whereabouts::Waiting inner(where, 4);
    EXPECT_EQ(where.Look().activity.waits_for, 4);
  }
  EXPECT_EQ(where.Look().activity.waits_for, Activity::kNobody);
}

// Buckets are exchanged while backward still computes; that is no wait of the worker's.
TEST(Whereabouts, WhatAnotherThreadWaitsForCountsOnlyOnceAllIsHandedOver) {
  Whereabouts where;
  where.BeginEpoch(0);
  where.At(0, Phase::kComputing);
  where.Place("lane 1, backward");
  std::optional<Whereabouts::Waiting> waiting;
  std::thread([&] {
    where.SidePlace("bucket 2");
    waiting.emplace(where, 1);
  }).join();
  EXPECT_EQ(where.Look().activity, (Activity{"computing, lane 1, backward", Activity::kNobody}));
  {
    const Whereabouts::HandedOver handed_over(where);
    EXPECT_EQ(where.Look().activity, (Activity{"computing, bucket 2", 1}));
    waiting.reset();
    EXPECT_EQ(where.Look().activity, (Activity{"computing, bucket 2", Activity::kNobody}));
  }
  EXPECT_EQ(where.Look().activity.place, "computing, lane 1, backward");
}

// The thread of a group that could not be built may be left behind in its wait.
TEST(Whereabouts, AWaitOfAnEarlierEpochIsForgotten) {
  Whereabouts where;
  where.BeginEpoch(0);
  const Whereabouts::Waiting left_behind(where, 1);
  where.BeginEpoch(0);
  const Whereabouts::HandedOver handed_over(where);
  EXPECT_EQ(where.Look().activity.waits_for, Activity::kNobody);
}

}  // namespace
}  // namespace keel
