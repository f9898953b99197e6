// GatherPlan: played through for many sizes, everybody ends up with all records.
#include "trainer/exchange/gather_plan.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace keel {
namespace {

std::vector<std::vector<GatherRound>> PlansOf(int size) {
  std::vector<std::vector<GatherRound>> plans;
  for (int rank = 0; rank < size; ++rank) plans.push_back(PlanGather(rank, size));
  return plans;
}

TEST(GatherPlan, TakesTheLogarithmOfTheSize) {
  for (int size = 1; size <= 40; ++size) {
    EXPECT_EQ(PlanGather(0, size).size(), std::bit_width(static_cast<unsigned>(size - 1)));
  }
}

TEST(GatherPlan, EverybodyKnowsAllAndIsToldNothingTwice) {
  for (int size = 1; size <= 40; ++size) {
    const auto plans = PlansOf(size);
    std::vector<std::set<int>> known;
    for (int rank = 0; rank < size; ++rank) known.push_back({rank});
    for (size_t k = 0; k < plans[0].size(); ++k) {
      const std::vector<std::set<int>> before = known;
      for (int rank = 0; rank < size; ++rank) {
        const GatherRound& round = plans[static_cast<size_t>(rank)][k];
        const GatherRound& peer = plans[static_cast<size_t>(round.from)][k];
        EXPECT_EQ(peer.to, rank);
        EXPECT_EQ(peer.sends, round.receives);
        for (const int sent : round.receives) {
          EXPECT_TRUE(before[static_cast<size_t>(round.from)].count(sent)) << "not known yet";
          EXPECT_TRUE(known[static_cast<size_t>(rank)].insert(sent).second) << "told twice";
        }
      }
    }
    for (const auto& all : known) EXPECT_EQ(all.size(), static_cast<size_t>(size));
  }
}

}  // namespace
}  // namespace keel
