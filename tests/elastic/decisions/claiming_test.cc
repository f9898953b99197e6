// Claiming: what a host does about a role that hangs on a claim, case by case.
#include "elastic/decisions/claiming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = ClaimStep::Verdict;

constexpr TimePoint kFree{100s};

// Host "b" is the second heir of "old", which holds the term 3 that all follow.
class Claiming : public testing::Test {
 protected:
  Claiming() {
    view_.self = "b";
    view_.followed = 3;
    view_.seen = RoleClaim{.term = 3, .by = "old", .is_alive = true};
    view_.heirs = {{"a", "a:1"}, {"b", "b:1"}, {"c", "c:1"}};
  }
  void Free() {
    view_.seen->is_alive = false;
    view_.free_since = kFree;
  }
  ClaimStep After(Duration time) { return DecideClaim(view_, kFree + time); }

  ClaimView view_;
};

TEST_F(Claiming, WhoeverIsInOfficeIsFollowed) {
  EXPECT_EQ(After(1h).verdict, Verdict::kStay);
  view_.seen = RoleClaim{.term = 5, .by = "c", .is_alive = true};
  const ClaimStep step = After(0ms);
  EXPECT_EQ(step.verdict, Verdict::kFollow);
  EXPECT_THAT(step.detail, HasSubstr("term 5"));
  view_.followed = 0;   // a newcomer
  EXPECT_EQ(After(0ms).verdict, Verdict::kFollow);
}

TEST_F(Claiming, TheFirstHostOfAJobClaimsAtOnce) {
  view_ = ClaimView{.self = "b"};
  const ClaimStep step = After(0ms);
  EXPECT_EQ(step.verdict, Verdict::kClaim);
  EXPECT_EQ(step.term, 1);
}

TEST_F(Claiming, EachHeirWaitsForThoseBeforeIt) {
  Free();
  EXPECT_EQ(After(199ms).verdict, Verdict::kWait);
  const ClaimStep step = After(200ms);
  EXPECT_EQ(step.verdict, Verdict::kClaim);
  EXPECT_EQ(step.term, 4);
  view_.self = "a";
  EXPECT_EQ(After(0ms).verdict, Verdict::kClaim);
}

TEST_F(Claiming, WhoeverIsNoHeirComesAfterAllHeirs) {
  Free();
  view_.self = "old";   // it stood still, and is back
  EXPECT_EQ(After(599ms).verdict, Verdict::kWait);
  EXPECT_EQ(After(600ms).verdict, Verdict::kClaim);
  view_ = ClaimView{.self = "new", .seen = view_.seen, .free_since = kFree};
  EXPECT_EQ(After(1599ms).verdict, Verdict::kWait);
  EXPECT_EQ(After(1600ms).verdict, Verdict::kClaim);
}

TEST_F(Claiming, AHolderWhoseProcessIsDeadIsNotWaitedFor) {
  view_.is_dead = true;
  view_.free_since = kFree;
  EXPECT_EQ(After(199ms).verdict, Verdict::kStay);
  const ClaimStep step = After(200ms);
  EXPECT_EQ(step.verdict, Verdict::kClaim);
  EXPECT_EQ(step.term, 4);
  EXPECT_THAT(step.detail, HasSubstr("is gone"));
}

TEST_F(Claiming, AnHeirThatIsAskedClaimsWhileTheHolderLives) {
  view_.is_asked = true;
  const ClaimStep step = After(0ms);
  EXPECT_EQ(step.verdict, Verdict::kClaim);
  EXPECT_EQ(step.term, 4);
  view_.may_claim = false;
  EXPECT_EQ(After(0ms).verdict, Verdict::kStay);
}

TEST_F(Claiming, TheHolderItselfStaysWhateverItHears) {
  view_.self = "old";
  view_.is_dead = view_.is_asked = true;
  view_.free_since = kFree;
  EXPECT_EQ(After(1h).verdict, Verdict::kStay);
}

TEST_F(Claiming, WhoeverIsAboutToEndClaimsNothing) {
  Free();
  view_.may_claim = false;
  EXPECT_EQ(After(1h).verdict, Verdict::kWait);
  view_.seen.reset();
  view_.followed = 0;
  EXPECT_EQ(After(1h).verdict, Verdict::kWait);
}

TEST_F(Claiming, AJobThatHasEndedIsBegunAnewOnlyByHostsThatWereNotInIt) {
  view_.seen = RoleClaim{.term = 4, .by = "old", .has_ended = true, .is_alive = true};
  EXPECT_EQ(After(1h).verdict, Verdict::kOver);
  view_.followed = 0;
  EXPECT_EQ(After(0ms).verdict, Verdict::kClaim);
  EXPECT_EQ(After(0ms).term, 5);
}

}  // namespace
}  // namespace keel
