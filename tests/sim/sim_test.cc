// The simulator as a test: thousands of seeds hold, a run repeats exactly, planted mistakes are
// found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/world.h"

namespace keel {
namespace {

std::string Told(uint64_t seed, const Outcome& outcome) {
  std::string text = "seed " + std::to_string(seed) + ": " + outcome.failure +
                     "\nreplay: elastic_sim --trace " + std::to_string(seed);
  for (const std::string& line : outcome.trace) text += "\n" + line;
  return text;
}

void ExpectHolds(uint64_t seed) {
  const Outcome outcome = Simulate(seed);
  EXPECT_EQ(outcome.failure, "") << Told(seed, outcome);
}

// Seeds whose runs once broke a promise; what was wrong is in the commits that added them.
TEST(Simulation, SeedsThatOnceFailedHold) {
  for (const uint64_t seed : {1, 225, 450, 613, 650, 1686, 2380, 2512, 3089, 6446, 19432}) {
    ExpectHolds(seed);
  }
}

// In four parts, so that they may run side by side.
class Seeds : public ::testing::TestWithParam<int> {};
TEST_P(Seeds, Hold) {
  constexpr uint64_t kSeeds = 750;
  for (uint64_t i = 0; i < kSeeds && !HasFailure(); ++i) ExpectHolds(GetParam() * kSeeds + i + 1);
}
INSTANTIATE_TEST_SUITE_P(Simulation, Seeds, ::testing::Range(0, 4));

TEST(Simulation, ARunRepeatsExactly) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = Simulate(seed), second = Simulate(seed);
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
}

// How many of the first seeds show the mistake, and as what.
struct Found {
  int runs = 0;
  std::string first;
};

Found SeedsThatFind(Defect defect, int seeds) {
  Found found;
  for (int seed = 1; seed <= seeds; ++seed) {
    Scenario scenario = DrawScenario(seed);
    scenario.defect = defect;
    const Outcome outcome = World(scenario, {}).Run();
    if (outcome.failure.empty()) continue;
    ++found.runs;
    if (found.first.empty()) found.first = outcome.failure;
  }
  return found;
}

TEST(PlantedMistake, PromisingTooEarlyIsFound) {
  EXPECT_THAT(SeedsThatFind(Defect::kPromisesTooEarly, 50).first, ::testing::HasSubstr("S4"));
}

}  // namespace
}  // namespace keel
