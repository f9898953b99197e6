// Mistakes planted in the simulated hosts: each is found, and soon. Without it all is well, as
// sim_test shows of drawn scenarios, and the tests here of scripted ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/sim/scripted.h"
#include "tests/sim/world.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

// The first thing that is found among the first seeds; empty: nothing is.
template <class Script>
std::string WhatFinds(Defect defect, int seeds, Script script) {
  for (int seed = 1; seed <= seeds; ++seed) {
    Scenario scenario = script(seed);
    scenario.defect = defect;
    const Outcome outcome = World(scenario, {}).Run();
    if (outcome.failure.empty()) continue;
    std::printf("found by seed %d: %s\n", seed, outcome.failure.c_str());
    return outcome.failure;
  }
  return "";
}

std::string WhatFinds(Defect defect, int seeds) { return WhatFinds(defect, seeds, DrawScenario); }

// As above, where without the mistake all is well.
template <class Script>
std::string WhatAloneFinds(Defect defect, int seeds, Script script) {
  EXPECT_EQ(WhatFinds(Defect::kNone, seeds, script), "");
  return WhatFinds(defect, seeds, script);
}

// The next epoch is then formed while workers are inside the former.
TEST(PlantedMistake, PromisingTooEarlyIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kPromisesTooEarly, 100), testing::MatchesRegex("S[45]: .*"));
}

TEST(PlantedMistake, NotWaitingForASilentHostIsFound) {
  const auto cut_off = [](int seed) { return LeftAlone(seed, SimFault::Kind::kCutOff, 15s); };
  EXPECT_THAT(WhatAloneFinds(Defect::kNoFence, 12, cut_off), testing::StartsWith("S5: "));
}

TEST(PlantedMistake, WorkersThatDoNotMissTheirSupervisorAreFound) {
  const auto paused = [](int seed) { return LeftAlone(seed, SimFault::Kind::kPause, 40s); };
  EXPECT_THAT(WhatAloneFinds(Defect::kTrustingWorkers, 12, paused), testing::StartsWith("S5: "));
}

// Two parts of a job then go on beside each other.
TEST(PlantedMistake, FormingEpochsWithoutAQuorumIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kNoQuorum, 200), testing::MatchesRegex("S[15]: .*"));
}

// What a stranger puts back or moves makes hosts do what nobody has decided.
TEST(PlantedMistake, BelievingStrangersIsFound) {
  const auto attacked = [](int seed) {
    Scenario scenario = DrawScenario(seed);
    scenario.sealed = true;
    return scenario;
  };
  EXPECT_THAT(WhatAloneFinds(Defect::kBelievesAnybody, 20, attacked),
              testing::MatchesRegex("[SL][0-9]: .*"));
}

TEST(PlantedMistake, TakingSilenceForDeathIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kSilenceIsDeath, 200), testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, GoingOnByALeaseThatNotAllKnowIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kLeaseIsEnough, 200, NotShared),
              testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, TakingALeaseThatIsHeldIsFound) {
  // It matters only to hosts that were in no epoch, and those begin a lineage of their own.
  EXPECT_THAT(WhatFinds(Defect::kLeaseIsFree, 700), testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, MixedNumericsAreFound) {
  EXPECT_THAT(WhatFinds(Defect::kAnyNumerics, 200), testing::StartsWith("S8: "));
}

TEST(PlantedMistake, ACoordinatorThatDoesNotLookIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kDeafCoordinator, 100), testing::StartsWith("L1: "));
}

TEST(PlantedMistake, TakingTheRoleUnaskedIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kTakesUnasked, 200), testing::StartsWith("S9: "));
}

TEST(PlantedMistake, FollowingABoardThatIsBehindIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kFollowsBehind, 200), testing::StartsWith("S9: "));
}

TEST(PlantedMistake, OpeningABoardTwiceIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kOpensTwice, 200), testing::StartsWith("S9: "));
}

TEST(PlantedMistake, FormingEpochsBeforeTheFormerBoardIsLeftIsFound) {
  EXPECT_THAT(WhatAloneFinds(Defect::kOutrunsMoved, 12, HandedOver),
              testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, ForgettingRestartsInATakeoverIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kForgetsRestarts, 200), testing::StartsWith("S10: "));
}

TEST(PlantedMistake, CountingNobodyWhoIsDeadIsFound) {
  EXPECT_THAT(WhatAloneFinds(Defect::kDeadNotCounted, 12, DiedElsewhere),
              testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, FormingOnWithALeaseThatAnotherHoldsIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kFormsOn, 200), testing::MatchesRegex("S[15]: .*"));
}

}  // namespace
}  // namespace keel
