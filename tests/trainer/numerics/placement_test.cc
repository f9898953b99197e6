// Placement: every lane once, the best by given costs, and few nodes where links count.
#include "trainer/numerics/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/random.h"

namespace keel {
namespace {

PlacementCosts Costs(std::vector<int64_t> lane_ns, int64_t link_ns) {
  return {std::move(lane_ns), link_ns};
}

void ExpectCovers(const Placement& placement, int world, int lanes) {
  ASSERT_EQ(placement.size(), static_cast<size_t>(world));
  int covered = 0;
  for (const LaneRange& range : placement) {
    EXPECT_EQ(range.begin, covered);
    EXPECT_GE(range.count(), lanes >= world ? 1 : 0);
    covered = range.end;
  }
  EXPECT_EQ(covered, lanes);
}

// All placements there are, one by one.
int64_t LeastTime(int lanes, const PlacementCosts& costs) {
  const int world = static_cast<int>(costs.lane_ns.size());
  int64_t least = std::numeric_limits<int64_t>::max();
  Placement placement;
  const std::function<void(int)> extend = [&](int begin) {
    if (placement.size() == static_cast<size_t>(world)) {
      if (begin == lanes) least = std::min(least, StepTimeOf(placement, costs));
      return;
    }
    for (int end = begin + (lanes >= world ? 1 : 0); end <= lanes; ++end) {
      placement.push_back({begin, end});
      extend(end);
      placement.pop_back();
    }
  };
  extend(0);
  return least;
}

TEST(Placement, OfSomeGivesTheOthersNone) {
  using Ranges = std::vector<LaneRange>;
  EXPECT_EQ(SpreadOver({true, false, true}, {{0, 4}, {4, 8}}), (Ranges{{0, 4}, {4, 4}, {4, 8}}));
  EXPECT_EQ(SpreadOver({false, true, true, false}, {{0, 1}, {1, 2}}),
            (Ranges{{0, 0}, {0, 1}, {1, 2}, {2, 2}}));
  const PlacementCosts costs = CostsOf({true, false, true}, {{1, 2, 3}, 7});
  EXPECT_EQ(costs.lane_ns, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(costs.link_ns, 7);
}

TEST(Placement, TakesTheLeastTimeOfAll) {
  Random random(11);
  for (int round = 0; round < 400; ++round) {
    const int world = 1 + static_cast<int>(random.Uniform(5));
    const int lanes = 1 + static_cast<int>(random.Uniform(12));
    PlacementCosts costs;
    for (int rank = 0; rank < world; ++rank) {
      costs.lane_ns.push_back(1000 + static_cast<int64_t>(random.Uniform(1000)));
    }
    costs.link_ns = static_cast<int64_t>(random.Uniform(3000));
    const Placement best = BestPlacement(lanes, costs);
    ExpectCovers(best, world, lanes);
    // A placement may be missed whose slowest worker is not the fastest of those with few nodes.
    const int64_t least = LeastTime(lanes, costs);
    EXPECT_LE(StepTimeOf(best, costs), least + least / 20)
        << PlacementText(best) << " of " << lanes << " lanes, round " << round;
    EXPECT_LE(StepTimeOf(best, costs), StepTimeOf(EvenPlacement(world, lanes), costs));
  }
}

// What lanes that do not divide cost today, and what is left of that where links decide.
TEST(Placement, OverSlowLinksEachWorkerShipsOneNode) {
  EXPECT_EQ(BusiestLink(EvenPlacement(3, 8)), 6);   // 1.5 times 2 (world - 1)
  for (const int world : {3, 5, 6, 7}) {
    for (const int lanes : {8, 12, 16}) {
      const std::vector<int64_t> alike(static_cast<size_t>(world), 1000);
      const Placement placed = BestPlacement(lanes, Costs(alike, 1'000'000));
      ExpectCovers(placed, world, lanes);
      EXPECT_LE(static_cast<double>(BusiestLink(placed)), 1.1 * 2 * (world - 1))
          << PlacementText(placed);
    }
  }
  EXPECT_EQ(PlacementText(BestPlacement(8, Costs({10, 10, 10}, 1000))), "2+2+4");
}

TEST(Placement, OverFastLinksNobodyComputesMoreThanTheBusiestOfAnEvenSplit) {
  EXPECT_EQ(PlacementText(BestPlacement(8, Costs({1000, 1000, 1000}, 1))),
            PlacementText(EvenPlacement(3, 8)));
  for (int world = 1; world <= 16; ++world) {
    for (int lanes = 1; lanes <= 24; ++lanes) {
      const Placement placed = BestPlacement(lanes, Costs(std::vector<int64_t>(world), 0));
      ExpectCovers(placed, world, lanes);
      const auto most = [](const Placement& placement) {
        int count = 0;
        for (const LaneRange& range : placement) count = std::max(count, range.count());
        return count;
      };
      const Placement even = EvenPlacement(world, lanes);
      EXPECT_EQ(most(placed), most(even)) << PlacementText(placed);
      EXPECT_LE(BusiestLink(placed), BusiestLink(even)) << PlacementText(placed);
    }
  }
  // As many lanes at most, and yet one node each.
  EXPECT_EQ(PlacementText(BestPlacement(8, Costs({0, 0, 0, 0, 0}, 0))), "1+1+2+2+2");
}

TEST(Placement, SlowWorkersGetFewerLanes) {
  EXPECT_EQ(PlacementText(BestPlacement(12, Costs({1000, 2000, 1000}, 1))), "5+2+5");
  // Of whom nothing is known, the usual is expected.
  EXPECT_EQ(PlacementText(BestPlacement(12, Costs({1000, 0, 1000}, 1))), "4+4+4");
  EXPECT_EQ(PlacementText(BestPlacement(8, Costs({1000, 900'000}, 1))), "7+1");
}

TEST(Placement, LargeGroupsArePlacedSoonAndHugeOnesEvenly) {
  Random random(3);
  for (const int world : {64, 512}) {
    PlacementCosts costs{{}, 100};
    for (int rank = 0; rank < world; ++rank) {
      costs.lane_ns.push_back(1000 + static_cast<int64_t>(random.Uniform(300)));
    }
    ExpectCovers(BestPlacement(2 * world, costs), world, 2 * world);
  }
  EXPECT_EQ(BestPlacement(65536, Costs({1, 2}, 3)), EvenPlacement(2, 65536));
  const PlacementCosts many{std::vector<int64_t>(4096, 1000), 100};
  EXPECT_EQ(BestPlacement(8192, many), EvenPlacement(4096, 8192));
}

}  // namespace
}  // namespace keel
