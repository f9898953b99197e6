// The simulator as a test: thousands of seeds hold, a run repeats exactly, planted mistakes are
// found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/protocol/exit_codes.h"
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
  for (const uint64_t seed : {1, 225, 450, 613, 650, 1686, 2380, 2512, 3089, 6446, 19432,
                              36005, 36596, 200273, 201610, 202473, 202566, 7013535,
                              11002674, 12040922, 12071567, 12088614, 12097775,
                              13042886, 13057942, 13094215, 13094447,
                              14063010}) {
    ExpectHolds(seed);
  }
}

// In four parts, so that they may run side by side.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kSeeds = 100;   // of memory; what holds is shown without the sanitizer
#else
constexpr uint64_t kSeeds = 600;
#endif
class Seeds : public ::testing::TestWithParam<int> {};
TEST_P(Seeds, Hold) {
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

// The first thing that is found among the first seeds; empty: nothing is.
std::string WhatFinds(Defect defect, int seeds) {
  for (int seed = 1; seed <= seeds; ++seed) {
    Scenario scenario = DrawScenario(seed);
    scenario.defect = defect;
    const Outcome outcome = World(scenario, {}).Run();
    if (!outcome.failure.empty()) return outcome.failure;
  }
  return "";
}

// The next epoch is then formed while workers are inside the former.
TEST(PlantedMistake, PromisingTooEarlyIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kPromisesTooEarly, 100), testing::MatchesRegex("S[45]: .*"));
}

// Workers of the store's host die, and while the others make an epoch without them, the supervisors
// of all of those are cut off, or stand still: rare where faults are drawn one by one. The quorum
// rule would keep that host from going on alone, so it is off here, and nobody takes a role.
Scenario LeftAlone(uint64_t seed, SimFault::Kind how, Duration length) {
  using namespace std::chrono_literals;
  using Kind = SimFault::Kind;
  Scenario scenario = DrawScenario(seed);
  Random random = Random(seed).Fork("left-alone");
  scenario.hosts = 2 + static_cast<int>(random.Uniform(2));
  scenario.in_place = true;
  scenario.odd_host = -1;
  scenario.policy.hosts_min = 1;
  scenario.policy.needs_quorum = scenario.has_lease = false;
  scenario.one_coordinator = true;
  scenario.policy.hosts_max = scenario.hosts;
  scenario.policy.restarts.restarts_max = scenario.host.restarts.restarts_max = 1000;
  scenario.arrivals.assign(scenario.hosts, 0s);
  scenario.steps = 1000;
  scenario.faults.clear();
  for (Duration at = 5s; at < scenario.quiet_after - 10s; at += length + 5s) {
    for (int seat = 0; seat < scenario.seats; ++seat) {
      scenario.faults.push_back({Kind::kKillWorker, at, 0, seat});
    }
    const Duration cut = at + std::chrono::milliseconds(random.Uniform(300));
    for (int host = 1; host < scenario.hosts; ++host) {
      scenario.faults.push_back({how, cut, host, 0, length});
    }
  }
  return scenario;
}

// What the mistake leads to, where without it all is well.
std::string FoundWhereLeftAlone(Defect defect, SimFault::Kind how, Duration length) {
  std::string found;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Scenario scenario = LeftAlone(seed, how, length);
    EXPECT_EQ(World(scenario, {}).Run().failure, "") << "seed " << seed;
    scenario.defect = defect;
    if (found.empty()) found = World(scenario, {}).Run().failure;
  }
  return found;
}

TEST(PlantedMistake, NotWaitingForASilentHostIsFound) {
  using namespace std::chrono_literals;
  EXPECT_THAT(FoundWhereLeftAlone(Defect::kNoFence, SimFault::Kind::kCutOff, 15s),
              testing::StartsWith("S5: "));
}

TEST(PlantedMistake, WorkersThatDoNotMissTheirSupervisorAreFound) {
  using namespace std::chrono_literals;
  EXPECT_THAT(FoundWhereLeftAlone(Defect::kTrustingWorkers, SimFault::Kind::kPause, 40s),
              testing::StartsWith("S5: "));
}

// A stop of the whole job at this time, and nothing else that goes wrong.
Scenario Stopped(uint64_t seed, Duration at) {
  using namespace std::chrono_literals;
  Scenario scenario = DrawScenario(seed);
  scenario.hosts = 1 + static_cast<int>(seed % 2);
  scenario.seats = 2;
  scenario.in_place = true;
  scenario.odd_host = -1;
  scenario.policy.hosts_min = scenario.policy.hosts_max = scenario.hosts;
  scenario.host.seats = scenario.seats;
  scenario.host.restarts = scenario.policy.restarts = {.restarts_max = 10};
  scenario.host.shutdown_limit = 60s;
  scenario.host.close_limit = 1s;
  scenario.poke_loss = scenario.start_failure = scenario.slow = 0;
  scenario.has_lease = false;
  scenario.steps = 1000;
  scenario.arrivals.assign(scenario.hosts, 0s);
  scenario.faults = {{SimFault::Kind::kStop, at, 0, 0, 60s}};
  scenario.stop_asked = true;
  return scenario;
}

void ExpectSavedLongBeforeTheLimit(const Scenario& scenario) {
  const Outcome outcome = World(scenario, {}).Run();
  EXPECT_EQ(outcome.failure, "") << Told(scenario.seed, outcome);
  EXPECT_EQ(outcome.code, kExitStopped) << Told(scenario.seed, outcome);
  EXPECT_LT(outcome.simulated, std::chrono::seconds(30)) << Told(scenario.seed, outcome);
}

TEST(Simulation, AStopAtTheStartWaitsForNoLimit) {
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    // Not before all hosts have found the store: one that has not waits for it.
    Random random = Random(seed).Fork("stop");
    ExpectSavedLongBeforeTheLimit(
        Stopped(seed, std::chrono::milliseconds(500 + random.Uniform(1500))));
  }
}

TEST(Simulation, AStopBesideADeathIsSaved) {
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    Random random = Random(seed).Fork("stop");
    const Duration death = std::chrono::seconds(10);
    Scenario scenario = Stopped(seed, death + std::chrono::milliseconds(random.Uniform(800)));
    scenario.faults.insert(scenario.faults.begin(), {SimFault::Kind::kKillWorker, death, 0, 0});
    ExpectSavedLongBeforeTheLimit(scenario);
  }
}

// Two parts of a job then go on beside each other.
TEST(PlantedMistake, FormingEpochsWithoutAQuorumIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kNoQuorum, 200), testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, TakingSilenceForDeathIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kSilenceIsDeath, 200), testing::MatchesRegex("S[15]: .*"));
}

// Two of three hosts cannot reach the lease, and the third one cannot reach those two: they go on
// by their quorum, which they need no lease for, since neither has found their epoch there.
Scenario NotShared(uint64_t seed) {
  using namespace std::chrono_literals;
  Scenario scenario = DrawScenario(seed);
  scenario.hosts = 3;
  scenario.odd_host = -1;
  scenario.policy.hosts_min = 1;
  scenario.policy.hosts_max = 3;
  scenario.host.restarts = scenario.policy.restarts = {.restarts_max = 1000};
  scenario.start_failure = 0;
  scenario.steps = 1000;
  scenario.arrivals.assign(scenario.hosts, 0s);
  scenario.has_lease = true;
  scenario.lease_apart = scenario.lease_needs_link = false;
  scenario.lease_loss = scenario.lease_age = 0;
  const Duration cut = 12s + std::chrono::milliseconds(Random(seed).Uniform(5000));
  scenario.faults = {{SimFault::Kind::kLeaseAway, 1ms, 1, 0, 60s},
                     {SimFault::Kind::kLeaseAway, 1ms, 2, 0, 60s},
                     {SimFault::Kind::kCutOff, cut, 0, 0, 30s}};
  return scenario;
}

TEST(Simulation, OneOfThreeDoesNotGoOnByALeaseThatTheOthersCannotReach) {
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    const Outcome outcome = World(NotShared(seed), {}).Run();
    EXPECT_EQ(outcome.failure, "") << Told(seed, outcome);
  }
}

TEST(PlantedMistake, GoingOnByALeaseThatNotAllKnowIsFound) {
  std::string found;
  for (uint64_t seed = 1; seed <= 200 && found.empty(); ++seed) {
    Scenario scenario = NotShared(seed);
    scenario.defect = Defect::kLeaseIsEnough;
    found = World(scenario, {}).Run().failure;
  }
  EXPECT_THAT(found, testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, TakingALeaseThatIsHeldIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kLeaseIsFree, 200), testing::MatchesRegex("S[15]: .*"));
}

TEST(PlantedMistake, MixedNumericsAreFound) {
  EXPECT_THAT(WhatFinds(Defect::kAnyNumerics, 200), testing::StartsWith("S8: "));
}

TEST(PlantedMistake, ACoordinatorThatDoesNotLookIsFound) {
  EXPECT_THAT(WhatFinds(Defect::kDeafCoordinator, 100), testing::StartsWith("L1: "));
}

}  // namespace
}  // namespace keel
