// LanePlacer: each line of its table, and jobs that are made up.
#include "trainer/loop/lane_placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace keel {
namespace {

using State = LanePlacer::State;
using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

// What the steps of a made-up job take.
struct Job {
  std::vector<int64_t> lane_ns;
  int64_t link_ns = 0;
  // Beyond what the placer can know.
  std::function<int64_t(const Placement&)> more = [](const Placement&) { return int64_t{0}; };

  std::optional<std::string> Step(LanePlacer& placer) const {
    std::vector<int64_t> compute;
    std::vector<int64_t> exchange;
    int64_t slowest = 0;
    const Placement& now = placer.now();
    for (size_t rank = 0; rank < lane_ns.size(); ++rank) {
      compute.push_back(lane_ns[rank] * now[rank].count());
      slowest = std::max(slowest, compute.back());
    }
    const int64_t link = link_ns * BusiestLink(now) / static_cast<int64_t>(lane_ns.size());
    for (const int64_t own : compute) exchange.push_back(slowest - own + link + more(now));
    return placer.Note(compute, exchange);
  }
};

// The changes of so many steps.
std::vector<std::string> Changes(LanePlacer& placer, const Job& job, int steps) {
  std::vector<std::string> changes;
  for (int step = 0; step < steps; ++step) {
    if (const auto change = job.Step(placer)) changes.push_back(*change);
  }
  return changes;
}

LanePlacer Begun(int world, int lanes, const PlacementCosts& known = {}) {
  LanePlacer placer(world, lanes, true);
  PlacementCosts all = known;
  all.lane_ns.resize(static_cast<size_t>(world));
  placer.Begin(all);
  return placer;
}

TEST(LanePlacer, StaysWhereNothingIsBetter) {
  LanePlacer placer = Begun(3, 12);
  EXPECT_TRUE(Changes(placer, {{kMs, kMs, kMs}, kMs}, 2000).empty());
  EXPECT_EQ(PlacementText(placer.now()), "4+4+4");
  EXPECT_EQ(placer.state(), State::kMeasuring);
  EXPECT_EQ(placer.costs().lane_ns, std::vector<int64_t>(3, kMs));
  EXPECT_NEAR(static_cast<double>(placer.costs().link_ns), kMs, 1);
}

TEST(LanePlacer, ShipsFewerNodesOverSlowLinks) {
  LanePlacer placer = Begun(3, 8);
  EXPECT_EQ(PlacementText(placer.now()), PlacementText(EvenPlacement(3, 8)));
  const auto changes = Changes(placer, {{kMs, kMs, kMs}, 10 * kMs}, 100);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(changes[0], HasSubstr("2+2+4 lanes instead of 2+3+3: a step should take "));
  EXPECT_EQ(placer.state(), State::kMeasuring);
}

TEST(LanePlacer, TakesLanesFromASlowWorkerAndGivesThemBack) {
  LanePlacer placer = Begun(3, 12);
  EXPECT_EQ(Changes(placer, {{kMs, 2 * kMs, kMs}, 0}, 60).size(), 1u);
  EXPECT_EQ(PlacementText(placer.now()), "5+2+5");
  EXPECT_EQ(Changes(placer, {{kMs, kMs, kMs}, 0}, 400).size(), 1u);
  EXPECT_EQ(PlacementText(placer.now()), "4+4+4");
}

TEST(LanePlacer, GoesBackFromWhatWasSlowerAndStaysThere) {
  LanePlacer placer = Begun(3, 12);
  const Placement first = placer.now();
  const Job job{{kMs, 2 * kMs, kMs}, 0, [&](const Placement& now) {
    return now == first ? 0 : 20 * kMs;
  }};
  const auto changes = Changes(placer, job, 2000);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_THAT(changes[1], HasSubstr("4+4+4 lanes again: a step took "));
  EXPECT_EQ(placer.state(), State::kSettled);
  EXPECT_EQ(placer.now(), first);
}

TEST(LanePlacer, OneSlowStepDecidesNothing) {
  LanePlacer placer = Begun(2, 8);
  const Job usual{{kMs, kMs}, 0};
  const Job hiccup{{kMs, 50 * kMs}, 0};
  for (int step = 0; step < 500; ++step) {
    EXPECT_FALSE((step % 5 == 3 ? hiccup : usual).Step(placer)) << step;
  }
}

TEST(LanePlacer, BeginsWithWhatWasKnown) {
  EXPECT_EQ(PlacementText(Begun(3, 8, {{kMs, kMs, 0}, 10 * kMs}).now()), "2+2+4");
  EXPECT_EQ(PlacementText(Begun(3, 12, {{kMs, 2 * kMs, 0}, 0}).now()), "5+2+5");
}

TEST(LanePlacer, TellsWhyItBeginsWithWhatWasKnown) {
  LanePlacer placer(3, 12, true);
  EXPECT_EQ(placer.Begin({{kMs, 2 * kMs, kMs}, 0}).value_or(""),
            "5+2+5 lanes instead of 4+4+4: a step should take 5 ms instead of 8 ms");
  LanePlacer even(3, 12, true);
  EXPECT_FALSE(even.Begin({{kMs, kMs, kMs}, 0}).has_value());
}

// It was measured in another group.
TEST(LanePlacer, WhatWasKnownIsOnlySupposed) {
  LanePlacer placer = Begun(3, 12, {{kMs, 2 * kMs, kMs}, 0});
  EXPECT_EQ(PlacementText(placer.now()), "5+2+5");
  EXPECT_EQ(placer.state(), State::kSupposing);
  const Job job{{2 * kMs, kMs, 2 * kMs}, 0};
  const auto changes = Changes(placer, job, 2000);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0], "4+4+4 lanes instead of 5+2+5: a step took 10 ms, and should take 8 ms");
  EXPECT_EQ(PlacementText(placer.now()), "3+6+3") << "as measured in this group";
  EXPECT_EQ(placer.state(), State::kMeasuring);
  // A little more is not worth it.
  EXPECT_EQ(PlacementText(Begun(2, 64, {{kMs, kMs + kMs / 50}, 0}).now()), "32+32");
}

// Nothing is known of it, so it is supposed to be as fast as the faster ones.
TEST(LanePlacer, ANewcomerThatIsSlowGetsFewerLanesInTheEnd) {
  LanePlacer placer = Begun(3, 12, {{kMs, 2 * kMs, 0}, 0});
  EXPECT_EQ(PlacementText(placer.now()), "5+2+5");
  const auto changes = Changes(placer, {{kMs, 2 * kMs, 2 * kMs}, 0}, 2000);
  EXPECT_EQ(changes.size(), 2u);
  EXPECT_EQ(PlacementText(placer.now()), "6+3+3");
  EXPECT_EQ(placer.state(), State::kMeasuring);
}

// The placer cannot know why it is slower, and finds out twice that it is.
TEST(LanePlacer, WhatWasSupposedAndIsSlowerOnceMeasuredIsLeftForGood) {
  LanePlacer placer = Begun(3, 12, {{kMs, 2 * kMs, kMs}, 0});
  const Placement even = BestPlacement(12, {{0, 0, 0}, 0});
  const Job job{{kMs, 2 * kMs, kMs}, 0, [&](const Placement& now) {
    return now == even ? 0 : 20 * kMs;
  }};
  const auto changes = Changes(placer, job, 2000);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_THAT(changes[2], HasSubstr("4+4+4 lanes again: a step took 25 ms instead of 8 ms"));
  EXPECT_EQ(placer.now(), even);
  EXPECT_EQ(placer.state(), State::kSettled);
}

TEST(LanePlacer, AnEvenSplitCanBeAskedFor) {
  LanePlacer placer(3, 8, false);
  placer.Begin({{kMs, 9 * kMs, kMs}, 10 * kMs});
  EXPECT_TRUE(Changes(placer, {{kMs, 9 * kMs, kMs}, 10 * kMs}, 300).empty());
  EXPECT_EQ(placer.now(), EvenPlacement(3, 8));
}

TEST(LanePlacer, WorkersWithoutLanesAreNotMeasured) {
  LanePlacer placer = Begun(4, 2);
  EXPECT_TRUE(Changes(placer, {{kMs, kMs, kMs, kMs}, kMs}, 100).empty());
  int without = 0;
  for (size_t rank = 0; rank < 4; ++rank) {
    without += placer.now()[rank].empty();
    EXPECT_EQ(placer.costs().lane_ns[rank] == 0, placer.now()[rank].empty());
  }
  EXPECT_EQ(without, 2);
}

}  // namespace
}  // namespace keel
