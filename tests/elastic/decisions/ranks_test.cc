// Ranks: survivors keep theirs, the others fill the gaps by place.
#include "elastic/decisions/ranks.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

Candidate At(int64_t slot, int index, int former_rank = -1) {
  return {slot, index, "w" + std::to_string(slot) + std::to_string(index), former_rank};
}

// "slot.index slot.index ..." by rank.
std::string Text(const std::vector<EpochWorker>& workers) {
  std::string text;
  for (size_t i = 0; i < workers.size(); ++i) {
    EXPECT_EQ(workers[i].rank, static_cast<int>(i));
    text += (i == 0 ? "" : " ") + std::to_string(workers[i].slot) + "." +
            std::to_string(workers[i].index);
  }
  return text;
}

TEST(RanksInPlace, NewOnesComeInTheOrderOfTheirPlaces) {
  EXPECT_EQ(Text(RanksInPlace({At(2, 0), At(0, 1), At(0, 0)})), "0.0 0.1 2.0");
  EXPECT_EQ(Text(RanksInPlace({})), "");
}

TEST(RanksInPlace, SurvivorsKeepRanksBelowTheNewSize) {
  // Rank 1 died: rank 3 is too high and moves into the gap, 0 and 2 stay.
  EXPECT_EQ(Text(RanksInPlace({At(0, 0, 0), At(1, 0, 2), At(1, 1, 3)})), "0.0 1.1 1.0");
  // A newcomer takes the gap, though its place comes last.
  EXPECT_EQ(Text(RanksInPlace({At(0, 0, 0), At(1, 0, 2), At(9, 0)})), "0.0 9.0 1.0");
  // A newcomer at a first place displaces nobody.
  EXPECT_EQ(Text(RanksInPlace({At(0, 0), At(1, 0, 0), At(1, 1, 1)})), "1.0 1.1 0.0");
}

TEST(RanksInPlace, TheOrderOfTheInputDoesNotMatter) {
  EXPECT_EQ(Text(RanksInPlace({At(1, 1, 3), At(0, 0, 0), At(1, 0, 2)})), "0.0 1.1 1.0");
}

TEST(RanksInPlace, OfTwoWithTheSameFormerRankTheFirstPlaceKeepsIt) {
  EXPECT_EQ(Text(RanksInPlace({At(1, 0, 1), At(0, 0, 1)})), "1.0 0.0");
}

TEST(RanksInPlace, WorkersKeepTheirIncarnation) {
  EXPECT_EQ(RanksInPlace({At(4, 2)})[0].worker, "w42");
}

TEST(RanksForeign, RunThroughTheHostsInTheirOrder) {
  const std::vector<EpochHost> hosts = {{3, "c", 0}, {1, "a", 1}};
  EXPECT_EQ(Text(RanksForeign(hosts, {At(1, 1), At(3, 0), At(1, 0), At(3, 1)})),
            "3.0 3.1 1.0 1.1");
}

TEST(RanksForeignDeath, ACandidateOfNoHostIsABug) {
  EXPECT_DEATH(RanksForeign({{3, "c", 0}}, {At(1, 1)}), "candidates on hosts");
}

}  // namespace
}  // namespace keel
