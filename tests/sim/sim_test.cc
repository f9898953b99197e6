// The simulator as a test: thousands of seeds hold, a run repeats exactly, scripted jobs get on.
#include <gtest/gtest.h>

#include "elastic/protocol/exit_codes.h"
#include "tests/harness/sanitizers.h"
#include "tests/sim/scripted.h"
#include "tests/sim/world.h"

namespace keel {
namespace {

constexpr uint64_t kSeeds = Rounds(200, 10), kStops = Rounds(400, 10), kSplits = Rounds(12, 3);
constexpr uint64_t kNightlySeeds = kUnderAddressSanitizer ? 1'000 : 25'000;
constexpr int kParts = 4;   // so many may run side by side

void ExpectHolds(uint64_t seed) {
  const Outcome outcome = Simulate(seed);
  EXPECT_EQ(outcome.failure, "") << Told(seed, outcome);
}

// Seeds whose runs once broke a promise; what was wrong is in the commits that added them.
// A sanitizer gets every seventh of them.
TEST(Simulation, SeedsThatOnceFailedHold) {
  int number = 0;
  for (const uint64_t seed : {1, 225, 450, 613, 650, 1686, 2380, 2512, 3089, 6446, 19432,
                              36005, 36596, 200273, 201610, 202473, 202566, 7013535,
                              11002674, 12040922, 12071567, 12088614, 12097775,
                              13042886, 13057942, 13094215, 13094447,
                              14063010, 1939, 20002509, 20002919, 20009386, 20012989,
                              20013912, 20014316, 20023487, 1619, 3119, 1000371, 1005429, 1006055,
                              1008684, 1008729, 1009402, 1010464, 1013902, 1016559,
                              1007209, 30001123, 30002304, 1888, 40004920,
                              41004558, 41011794, 41042670, 41040333, 53009343}) {
    if (number++ % Rounds(1, 7) == 0) ExpectHolds(seed);
  }
}

void ExpectAllHold(uint64_t first_seed, uint64_t seeds) {
  for (uint64_t i = 0; i < seeds && !testing::Test::HasFailure(); ++i) ExpectHolds(first_seed + i);
}

class Seeds : public testing::TestWithParam<int> {};
TEST_P(Seeds, Hold) { ExpectAllHold(GetParam() * kSeeds + 1, kSeeds); }
INSTANTIATE_TEST_SUITE_P(Simulation, Seeds, testing::Range(0, kParts));

class ManySeeds : public testing::TestWithParam<int> {};
TEST_P(ManySeeds, Hold) { ExpectAllHold(1'000'000 + GetParam() * kNightlySeeds, kNightlySeeds); }
INSTANTIATE_TEST_SUITE_P(NightlySimulation, ManySeeds, testing::Range(0, kParts));

TEST(Simulation, ARunRepeatsExactly) {
  for (uint64_t seed = 1; seed <= Rounds(uint64_t{20}, uint64_t{3}); ++seed) {
    const Outcome first = Simulate(seed), second = Simulate(seed);
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
}

void ExpectSavedLongBeforeTheLimit(const Scenario& scenario) {
  const Outcome outcome = World(scenario, {}).Run();
  EXPECT_EQ(outcome.failure, "") << Told(scenario.seed, outcome);
  EXPECT_EQ(outcome.code, kExitStopped) << Told(scenario.seed, outcome);
  EXPECT_LT(outcome.simulated, std::chrono::seconds(30)) << Told(scenario.seed, outcome);
}

TEST(Simulation, AStopAtTheStartWaitsForNoLimit) {
  for (uint64_t seed = 1; seed <= kStops && !HasFailure(); ++seed) {
    // Not before all hosts have found the store: one that has not waits for it.
    Random random = Random(seed).Fork("stop");
    ExpectSavedLongBeforeTheLimit(
        Stopped(seed, std::chrono::milliseconds(500 + random.Uniform(1500))));
  }
}

TEST(Simulation, AStopBesideADeathIsSaved) {
  for (uint64_t seed = 1; seed <= kStops && !HasFailure(); ++seed) {
    Random random = Random(seed).Fork("stop");
    const Duration death = std::chrono::seconds(10);
    Scenario scenario = Stopped(seed, death + std::chrono::milliseconds(random.Uniform(800)));
    scenario.faults.insert(scenario.faults.begin(), {SimFault::Kind::kKillWorker, death, 0, 0});
    ExpectSavedLongBeforeTheLimit(scenario);
  }
}

TEST(Simulation, OneOfThreeDoesNotGoOnByALeaseThatTheOthersCannotReach) {
  for (uint64_t seed = 1; seed <= kSplits && !HasFailure(); ++seed) {
    const Outcome outcome = World(NotShared(seed), {}).Run();
    EXPECT_EQ(outcome.failure, "") << Told(seed, outcome);
  }
}

}  // namespace
}  // namespace keel
