// Random walks through the quorum rule: by the rule, no two epochs run side by side; by each weaker
// one, they soon do. A failing walk prints its seed and what happened.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>

#include "tests/elastic/decisions/quorum_walk.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

constexpr int kHostsLeast = 2, kHostsMost = 7;

// Another walk for each seed and each number of hosts.
std::string StoryOf(int hosts, WalkRule rule, uint64_t seed) {
  QuorumWalk walk(hosts, rule, seed);
  walk.KeepStory();
  walk.Run();
  return walk.story();
}

// So many walks in all, shared among all numbers of hosts.
void WalkAll(int walks, uint64_t first_seed) {
  constexpr int kSizes = kHostsMost - kHostsLeast + 1;
  for (int hosts = kHostsLeast; hosts <= kHostsMost; ++hosts) {
    int64_t run = 0;
    const int share = walks / kSizes + (hosts - kHostsLeast < walks % kSizes ? 1 : 0);
    for (int i = 0; i < share; ++i) {
      QuorumWalk walk(hosts, WalkRule::kQuorum, first_seed + i);
      ASSERT_TRUE(walk.Run()) << hosts << " hosts, seed " << first_seed + i << "\n"
                              << StoryOf(hosts, WalkRule::kQuorum, first_seed + i);
      run += walk.epochs_run();
    }
    std::printf("%d hosts: %d walks, in each of which %.1f epochs ran, none side by side\n", hosts,
                share, static_cast<double>(run) / share);
  }
}

TEST(QuorumWalk, NoTwoEpochsRunSideBySide) { WalkAll(Rounds(6'000, 600), 1); }

TEST(NightlyQuorumWalk, NoTwoEpochsRunSideBySideInAMillionWalks) {
  WalkAll(1'000'000, 1'000'000);
}

struct WeakRule {
  const char* name;
  WalkRule rule;
};
void PrintTo(const WeakRule& rule, std::ostream* out) { *out << rule.name; }

class WeakQuorumWalk : public testing::TestWithParam<WeakRule> {};

INSTANTIATE_TEST_SUITE_P(
    All, WeakQuorumWalk,
    testing::Values(WeakRule{"Anything", WalkRule::kAnything},
                    WeakRule{"NewestToldOnly", WalkRule::kNewestToldOnly},
                    WeakRule{"MetOnly", WalkRule::kMetOnly},
                    WeakRule{"DeadNotCounted", WalkRule::kDeadNotCounted},
                    WeakRule{"ClosedIsDead", WalkRule::kClosedIsDead},
                    WeakRule{"PromisesIgnored", WalkRule::kPromisesIgnored},
                    WeakRule{"SilenceIgnored", WalkRule::kSilenceIgnored}),
    [](const auto& info) { return std::string(info.param.name); });

// Of two and three hosts in turn, for which splits are found soonest.
TEST_P(WeakQuorumWalk, IsFoundToSplit) {
  constexpr int kWalksMax = 3000;
  for (int i = 0; i < kWalksMax; ++i) {
    QuorumWalk walk(2 + i % 2, GetParam().rule, i);
    if (walk.Run()) continue;
    std::printf("%s: split in walk %d\n", GetParam().name, i + 1);
    return;
  }
  ADD_FAILURE() << "no split was found in " << kWalksMax << " walks";
}

}  // namespace
}  // namespace keel
