// Follow: what a host does that has lost its coordinator, case by case.
#include "elastic/decisions/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = FollowStep::Verdict;

constexpr TimePoint kLost{100s};

BoardPlace At(int64_t term, int64_t epoch, const std::string& by) {
  return {term, epoch, by + ":29400", by};
}

// Host "b" is the second heir of "old", which it has lost.
class Follow : public testing::Test {
 protected:
  Follow() {
    view_.self = "b";
    view_.lost = At(1, 7, "old");
    view_.heirs = {{"a", "a:1"}, {"b", "b:1"}, {"c", "c:1"}};
    view_.lost_at = kLost;
    view_.heard = kLost - 500ms;
  }
  FollowStep After(Duration time) { return DecideFollow(view_, kLost + time); }

  FollowView view_;
};

TEST_F(Follow, EachHeirWaitsForThoseBeforeItAfterARefusalAShortTime) {
  view_.refused = true;
  EXPECT_EQ(After(199ms).verdict, Verdict::kLook);
  const FollowStep step = After(200ms);
  EXPECT_EQ(step.verdict, Verdict::kOpen);
  EXPECT_EQ(step.place.term, 2);
  EXPECT_THAT(step.detail, HasSubstr("is gone, and this host is heir 2"));
  view_.self = "a";
  EXPECT_EQ(After(0ms).verdict, Verdict::kOpen);
}

std::vector<std::string> NamesOf(const std::vector<Heir>& heirs) {
  std::vector<std::string> names;
  for (const Heir& heir : heirs) names.push_back(heir.incarnation);
  return names;
}

TEST_F(Follow, OnlyHeirsThatCanHaveOpenedABoardAreAskedButByHeirs) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(NamesOf(HeirsToAsk(view_, kLost)), (Names{"a", "c"})) << "an heir";
  view_.self = "z";
  EXPECT_EQ(NamesOf(HeirsToAsk(view_, kLost)), Names{}) << "silence";
  view_.refused = true;
  EXPECT_EQ(NamesOf(HeirsToAsk(view_, kLost)), (Names{"a"}));
  EXPECT_EQ(NamesOf(HeirsToAsk(view_, kLost + 201ms)), (Names{"a", "b", "c"}));
  view_.refused = false;
  EXPECT_EQ(NamesOf(HeirsToAsk(view_, kLost + 1h)), (Names{"a", "b", "c"}));
}

TEST_F(Follow, TheFirstHeirGoesToItsOwnBoardOfWhichItHasToldOthers) {
  view_.refused = true;
  view_.heirs = {{"b", "b:1"}, {"a", "a:1"}};
  view_.own = At(2, 7, "b");
  view_.sights = {{At(2, 7, "c"), 0s}, {At(2, 8, "a"), 0s}};
  EXPECT_TRUE(IsToldAhead(view_.own, view_.lost, view_.heirs, true));
  EXPECT_EQ(After(1s).place, At(2, 7, "b"));
  EXPECT_FALSE(IsToldAhead(view_.own, view_.lost, view_.heirs, false)) << "it may come back";
  view_.refused = false;
  EXPECT_EQ(After(10s).place, At(2, 8, "a"));
  view_.refused = true;
  view_.own = At(2, 6, "b");   // it is behind what was lost
  EXPECT_EQ(After(1s).place, At(2, 8, "a"));
  view_.own = At(2, 7, "b");
  std::swap(view_.heirs[0], view_.heirs[1]);   // the second heir comes to the first one
  EXPECT_EQ(After(1s).place, At(2, 8, "a"));
}

// Its own board moved to one that moved at once, to a third that it cannot reach; meanwhile another
// host has not left the first one.
TEST_F(Follow, WhoeverKnowsNoHeirsGoesToNoBoardBehindTheOneThatItHasRead) {
  const std::vector<PeerSight> sights = {{At(1, 7, "a"), 0s}, {At(2, 6, "b"), 0s}};
  EXPECT_EQ(FurthestAhead(sights, std::nullopt), At(1, 7, "a"));
  EXPECT_EQ(FurthestAhead(sights, At(2, 7, "c")), std::nullopt);
  EXPECT_EQ(FurthestAhead(sights, At(1, 8, "a")), At(1, 7, "a")) << "others know less of it";
  EXPECT_EQ(FurthestAhead({{At(3, 9, "d"), kHeardLately}}, std::nullopt), std::nullopt);
}

TEST_F(Follow, ManyHostsAskOneAfterTheOtherAndHeirsAtOnce) {
  std::set<Duration> times;
  for (int host = 0; host < 1000; ++host) {
    const Duration after = AskAfter("host" + std::to_string(host), view_.heirs, 1000, 0);
    EXPECT_GE(after, Duration(0));
    EXPECT_LT(after, 500ms);
    times.insert(after);
  }
  EXPECT_GT(times.size(), 500u);
  EXPECT_EQ(AskAfter("b", view_.heirs, 1000, 0), Duration(0));
  EXPECT_LT(AskAfter("z", view_.heirs, 3, 0), 1500us);
  EXPECT_EQ(AskAfter("z", view_.heirs, 1'000'000, 1), 250ms);
}

TEST_F(Follow, ManyHostsWaitLongerForAnswersEachTime) {
  const auto patience = [&](int64_t hosts, int turn) {
    return AskPatience("z", view_.heirs, hosts, turn);
  };
  EXPECT_EQ(patience(1000, 0), kAskLimit);
  EXPECT_EQ(patience(1000, 1), 2 * kAskLimit);
  EXPECT_EQ(patience(1000, 3), 8 * kAskLimit);
  EXPECT_EQ(patience(1000, 400), 8 * kAskLimit);
  EXPECT_EQ(patience(12, 400), kAskLimit);
  EXPECT_EQ(AskPatience("b", view_.heirs, 1000, 3), kAskLimit) << "an heir";
}

TEST_F(Follow, SilenceIsBelievedOnlyOnceTheBeatLimitHasPassed) {
  EXPECT_EQ(After(view_.beat_limit - 500ms).verdict, Verdict::kLook);
  EXPECT_EQ(After(view_.beat_limit + 499ms).verdict, Verdict::kLook);
  const FollowStep step = After(view_.beat_limit + 500ms);
  EXPECT_EQ(step.verdict, Verdict::kOpen);
  EXPECT_THAT(step.detail, HasSubstr("is silent"));
}

TEST_F(Follow, NobodyOpensABoardWhileAnotherHostHearsTheCoordinator) {
  view_.sights = {{view_.lost, 1s}};
  EXPECT_EQ(After(1h).verdict, Verdict::kLook);
  EXPECT_THAT(After(1h).detail, HasSubstr("still hears"));
  view_.sights = {{view_.lost, kHeardLately}};   // too long ago
  EXPECT_EQ(After(1h).verdict, Verdict::kOpen);
  view_.sights = {{view_.lost, 1s}};             // it does not know yet
  view_.refused = true;
  EXPECT_EQ(After(1h).verdict, Verdict::kOpen);
}

TEST_F(Follow, WhoeverIsAheadIsFollowedAtOnce) {
  view_.sights = {{At(2, 7, "a"), 0ms}, {At(2, 8, "c"), 0ms}};
  const FollowStep step = After(0ms);
  EXPECT_EQ(step.verdict, Verdict::kFollow);
  EXPECT_EQ(step.place.by, "c") << "a higher epoch counts for more than anything";
  view_.sights = {{At(5, 6, "a"), 0ms}};         // it is behind
  EXPECT_EQ(After(0ms).verdict, Verdict::kLook);
  view_.sights = {{At(2, 7, "a"), kHeardLately}};
  EXPECT_EQ(After(0ms).verdict, Verdict::kLook) << "that host may have lost it as well";
}

TEST_F(Follow, ABoardThatIsOpenAlreadyIsFollowedWhenItsTurnComes) {
  view_.refused = true;
  view_.own = At(2, 7, "b");
  EXPECT_EQ(After(199ms).verdict, Verdict::kLook);
  const FollowStep step = After(200ms);
  EXPECT_EQ(step.verdict, Verdict::kFollow);
  EXPECT_EQ(step.place.address, "b:29400");
  view_.own = At(1, 0, "b");                     // one of an earlier term was left
  EXPECT_EQ(After(200ms).verdict, Verdict::kOpen);
}

TEST_F(Follow, AHostThatIsNoHeirLooksOn) {
  view_.self = "stranger";
  view_.refused = true;
  EXPECT_EQ(After(1h).verdict, Verdict::kLook);
  EXPECT_THAT(After(1h).detail, HasSubstr("no heir"));
}

TEST_F(Follow, NoHostOpensTwoBoardsOfOneTerm) {
  EXPECT_EQ(NextTerm(1, 0), 2);
  EXPECT_EQ(NextTerm(1, 1), 2) << "it kept the board that is handed over";
  EXPECT_EQ(NextTerm(1, 3), 4) << "it was further ahead, and came back";
  EXPECT_EQ(NextTerm(5, 3), 6);
}

}  // namespace
}  // namespace keel
