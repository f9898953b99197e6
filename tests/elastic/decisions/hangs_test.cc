// Hangs: who is named, and when.
#include "elastic/decisions/hangs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Ranks = std::vector<int64_t>;

constexpr HangLimits kLimits = {30s, 10s};
constexpr TimePoint kMoved{100s};

RankStanding Own(int rank, Position position, const std::string& place = "computing") {
  return {rank, position, {place, Activity::kNobody}};
}
RankStanding WaitsFor(int rank, int other, Position position = {7, 3}) {
  return {rank, position, {"computing, bucket 2", other}};
}
RankStanding Silent(RankStanding standing) {
  standing.silent = true;
  return standing;
}
HangDecision AtLimit(const std::vector<RankStanding>& standings) {
  return DecideHang(standings, kMoved, kLimits, kMoved + 10s);
}

TEST(HangLimit, IsWhatWasAskedForOrTwentySteps) {
  EXPECT_EQ(HangLimit(5s, 1h), 5s);
  EXPECT_EQ(HangLimit(std::nullopt, 0s), 60s);
  EXPECT_EQ(HangLimit(std::nullopt, 3s), 60s);
  EXPECT_EQ(HangLimit(std::nullopt, 4s), 80s);
}

TEST(Position, IsOrderedByStepThenPhaseThenTick) {
  const std::vector<Position> rising = {{},     {0, 0},    {0, 0, 1}, {0, 0, 9},
                                        {0, 1}, {0, 2, 5}, {1, 0}};
  for (size_t i = 1; i < rising.size(); ++i) EXPECT_LT(rising[i - 1], rising[i]) << i;
}

TEST(DecideHang, NamesNobodyBeforeTheLimit) {
  const std::vector<RankStanding> standings = {WaitsFor(0, 1), Silent(Own(1, {7, 3}))};
  const HangDecision early = DecideHang(standings, kMoved, kLimits, kMoved + 10s - 1ns);
  EXPECT_TRUE(early.ranks.empty());
  EXPECT_EQ(early.until, kMoved + 10s);
  EXPECT_EQ(AtLimit(standings).ranks, Ranks{1});
}

// What was told travels through a board before it is judged.
TEST(DecideHang, NeverDecidesBeforeWhatWorkersSayCanHaveArrived) {
  const std::vector<RankStanding> standings = {WaitsFor(0, 1), Own(1, {7, 3})};
  const HangLimits limits = {30s, 1s};
  EXPECT_TRUE(DecideHang(standings, kMoved, limits, kMoved + 2s).ranks.empty());
  EXPECT_EQ(DecideHang(standings, kMoved, limits, kMoved + kHangLook).ranks, Ranks{1});
}

// A stopped worker says nothing, and what it said last may be that it waits itself.
TEST(DecideHang, NamesTheWorkerThatSaysNothing) {
  const HangDecision hang = AtLimit(
      {WaitsFor(0, 1), Silent(WaitsFor(1, 2)), WaitsFor(2, 1)});
  EXPECT_EQ(hang.ranks, Ranks{1});
  EXPECT_EQ(hang.reason,
            "nothing moved for 10 s; rank 1 says nothing at all: is its process stopped? Last seen "
            "at step 7, computing, bucket 2; ranks 0 2 wait for it at step 7, computing, bucket 2");
}

TEST(DecideHang, NamesAllThatSayNothingWhereOthersAreLeft) {
  EXPECT_EQ(AtLimit({WaitsFor(0, 1), Silent(Own(1, {7, 3})), Silent(Own(2, {7, 3})),
                     WaitsFor(3, 2)}).ranks,
            (Ranks{1, 2}));
}

// A busy machine may keep a healthy worker silent for a moment.
TEST(DecideHang, ASilentWorkerThatNobodyWaitsForIsNotTheOneThatHangs) {
  EXPECT_EQ(AtLimit({WaitsFor(0, 1), Own(1, {7, 3}), Silent(WaitsFor(2, 1))}).ranks, Ranks{1});
}

TEST(DecideHang, NamesTheOneInItsOwnCodeThatOthersWaitForAndWhereItStands) {
  const HangDecision hang = AtLimit({WaitsFor(0, 2), WaitsFor(1, 2),
                                     Own(2, {7, 3}, "computing, lane 4, forward"), WaitsFor(3, 1)});
  EXPECT_EQ(hang.ranks, Ranks{2});
  EXPECT_THAT(hang.reason, HasSubstr("rank 2 is stuck in its own code at step 7, computing, "
                                     "lane 4, forward; ranks 0 1 wait for it"));
}

// The first ones are further, since they have saved already, say; that is no reason to name those
// that only wait.
TEST(DecideHang, APositionThatIsBehindIsNoReasonToNameOneThatWaits) {
  EXPECT_EQ(AtLimit({Own(0, {8, 1}), WaitsFor(1, 0, {7, 3}), WaitsFor(2, 0, {7, 3})}).ranks,
            Ranks{0});
}

TEST(DecideHang, OfSeveralInTheirOwnCodeItNamesTheOneMostOthersWaitFor) {
  EXPECT_EQ(AtLimit({Own(0, {7, 3}), Own(1, {7, 3}), WaitsFor(2, 1), WaitsFor(3, 1),
                     WaitsFor(4, 0)}).ranks,
            Ranks{1});
  // Equally many: the one furthest behind.
  EXPECT_EQ(AtLimit({Own(0, {6, 3}), Own(1, {7, 3}), WaitsFor(2, 1), WaitsFor(3, 0)}).ranks,
            Ranks{0});
}

TEST(DecideHang, WhoeverWaitsForAnybodyWaitsForThoseInTheirOwnCode) {
  EXPECT_EQ(AtLimit({WaitsFor(0, Activity::kAnybody), WaitsFor(1, Activity::kAnybody),
                     Own(2, {7, 3})}).ranks,
            Ranks{2});
}

TEST(DecideHang, WhereAllWaitForEachOtherItNamesOne) {
  const HangDecision hang = AtLimit({WaitsFor(0, 2), WaitsFor(1, 2), WaitsFor(2, 0)});
  EXPECT_EQ(hang.ranks, Ranks{2});
  EXPECT_THAT(hang.reason, HasSubstr("each worker waits for another one"));
  EXPECT_EQ(AtLimit({WaitsFor(0, 1), WaitsFor(1, 0)}).ranks, Ranks{1});
}

// They may just be slow, and a break would take the work of all.
TEST(DecideHang, WhereAllComputeItWarnsFirstAndThenNamesOne) {
  const std::vector<RankStanding> standings = {Own(0, {7, 3}), Own(1, {7, 3})};
  const HangDecision first = AtLimit(standings);
  EXPECT_TRUE(first.ranks.empty());
  EXPECT_EQ(first.until, kMoved + 40s);
  EXPECT_THAT(first.reason, HasSubstr("if their steps take that long, raise --hang-limit"));
  EXPECT_EQ(DecideHang(standings, kMoved, kLimits, kMoved + 40s).ranks, Ranks{1});
}

TEST(DecideHang, AWorkerAloneHangsAtTheLimit) {
  EXPECT_EQ(AtLimit({Own(0, {7, 3})}).ranks, Ranks{0});
  EXPECT_EQ(AtLimit({Silent(Own(0, {7, 3}))}).ranks, Ranks{0});
}

// Whatever is told: they hold the state together. The ranks are named for a reason.
TEST(DecideHang, NeverNamesAllOfSeveral) {
  Random random(26);
  for (int round = 0; round < 20'000; ++round) {
    const int world = 2 + static_cast<int>(random.Uniform(4));
    std::vector<RankStanding> standings;
    for (int rank = 0; rank < world; ++rank) {
      const int waits_for = static_cast<int>(random.Uniform(world + 3)) + Activity::kUntold;
      standings.push_back({rank, {static_cast<int64_t>(random.Uniform(3)), 0},
                           {"x", waits_for == rank ? Activity::kNobody : waits_for},
                           random.Chance(0.3)});
    }
    const HangDecision hang = DecideHang(standings, kMoved, kLimits, kMoved + 1h);
    ASSERT_FALSE(hang.ranks.empty()) << round;
    ASSERT_LT(hang.ranks.size(), standings.size()) << hang.reason;
    ASSERT_NE(hang.reason, "") << round;
  }
}

// --- Programs that do not tell for whom their workers wait ---

TEST(DecideHang, WithoutActivitiesItNamesThoseFurthestBehind) {
  const std::vector<RankStanding> standings = {{0, {7, 1}}, {1, {7, 0}}, {2, {8, 0}}, {3, {7, 0}}};
  const HangDecision late = AtLimit(standings);
  EXPECT_EQ(late.ranks, (Ranks{1, 3}));
  EXPECT_EQ(late.reason,
            "nothing moved for 10 s; ranks 1 3 are behind, at step 7, phase 0; the furthest is at "
            "step 8");
}

TEST(DecideHang, WithoutActivitiesItNamesOneWhereNobodyIsBehind) {
  EXPECT_EQ(AtLimit({{0, {7, 0}}, {1, {7, 0}}}).ranks, Ranks{1});
}

// --- Before a first position ---

// A worker that hangs before it meets the others would else hold them up for ever.
TEST(DecideHang, NamesThoseThatToldNothingAfterALimitOfTheirOwn) {
  const std::vector<RankStanding> standings = {{0, {7, 0}}, {1, {-1, 0}}, {2, {-1, 3}}};
  EXPECT_TRUE(DecideHang(standings, kMoved, kLimits, kMoved + 30s - 1ns).ranks.empty());
  const HangDecision late = DecideHang(standings, kMoved, kLimits, kMoved + 30s);
  EXPECT_EQ(late.ranks, (Ranks{1, 2}));
  EXPECT_EQ(late.reason,
            "nothing moved for 30 s; ranks 1 2 have not reported a position in this epoch");
}

TEST(DecideHang, WhoToldNothingAndIsSilentIsNamedAsSoonAsOthersWaitForIt) {
  EXPECT_EQ(AtLimit({WaitsFor(0, 1, {0, 0}), Silent({1, {}})}).ranks, Ranks{1});
  EXPECT_TRUE(AtLimit({Own(0, {0, 0}), Silent({1, {}})}).ranks.empty());
}

TEST(DecideHang, WithoutWorkersNobodyHangs) {
  const HangDecision decision = DecideHang({}, kMoved, kLimits, kMoved + 1h);
  EXPECT_TRUE(decision.ranks.empty());
  EXPECT_EQ(decision.until, kNever);
}

}  // namespace
}  // namespace keel
