// The judge of times: a table of what holders and lookers may do, and when.
#include "store/lease/lease_times.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

using namespace std::chrono_literals;

TimePoint At(Duration since_start) { return TimePoint{since_start}; }

const Error kAway{Code::kIo, "it is away"};
const Error kOver{Code::kStaleEpoch, "term 2 is claimed"};

TEST(JudgeHolder, BeatsSoonerAfterOneThatFailed) {
  EXPECT_EQ(JudgeHolder({At(10s), {}}).beat_at, At(12s));
  const HolderVerdict verdict = JudgeHolder({At(12s), kAway});
  EXPECT_FALSE(verdict.is_lost);
  EXPECT_EQ(verdict.beat_at, At(12s + kLeaseBeatRetry));
}

TEST(JudgeHolder, AHigherTermEndsItAtOnce) {
  const HolderVerdict verdict = JudgeHolder({At(12s), kOver});
  EXPECT_TRUE(verdict.is_lost);
  EXPECT_EQ(verdict.beat_at, kNever);
  EXPECT_EQ(verdict.detail, "its lease is lost: term 2 is claimed");
}

LeaseSight Sight(int64_t term, const std::string& beat) {
  LeaseSight sight;
  sight.term = term;
  sight.run = "run";
  sight.text = "a";
  sight.beat = beat;
  return sight;
}

LookerVerdict Judge(const LeaseWatch& watch, Duration now) {
  return JudgeLooker(watch, "run", At(now));
}

TEST(JudgeLooker, ClaimsWhatNobodyHoldsOrSomebodyReleased) {
  EXPECT_FALSE(Judge({}, 5s).may_claim);
  EXPECT_EQ(Judge({}, 5s).reason, LookerReason::kNotSeen);
  EXPECT_EQ(Judge({}, 5s).look_at, At(5s));
  const LookerVerdict first = Judge(AfterLook({}, LeaseSight{}, At(1s), At(1s)), 1s);
  EXPECT_TRUE(first.may_claim);
  EXPECT_EQ(first.term, 1);
  EXPECT_EQ(first.reason, LookerReason::kFree);
  LeaseSight released = Sight(4, "x");
  released.released = true;
  const LookerVerdict next = Judge(AfterLook({}, released, At(1s), At(1s)), 1s);
  EXPECT_TRUE(next.may_claim);
  EXPECT_EQ(next.term, 5);
  EXPECT_EQ(next.reason, LookerReason::kReleased);
}

TEST(JudgeLooker, ClaimsOnceTheBeatStoodStill) {
  LeaseWatch watch = AfterLook({}, Sight(4, "x"), At(10s), At(11s));
  EXPECT_EQ(Judge(watch, 12s).reason, LookerReason::kHeld);
  EXPECT_EQ(Judge(watch, 12s).detail, "term 4 is held, its beat rose 1 s ago");
  EXPECT_EQ(Judge(watch, 12s).look_at, At(14s));
  EXPECT_EQ(Judge(watch, 17s).look_at, At(18s));
  // The first look may have seen a beat that was written just before it ended, and the last one
  // nothing later than its beginning.
  watch = AfterLook(watch, Sight(4, "x"), At(18s - 1ns), At(30s));
  EXPECT_FALSE(Judge(watch, 30s).may_claim);
  watch = AfterLook(watch, Sight(4, "x"), At(18s), At(18s));
  EXPECT_TRUE(Judge(watch, 18s).may_claim);
  EXPECT_EQ(Judge(watch, 18s).term, 5);
  EXPECT_EQ(Judge(watch, 18s).reason, LookerReason::kStoodStill);
  EXPECT_EQ(Judge(watch, 18s).detail, "the beat of term 4 stood still for 7 s");
}

TEST(JudgeLooker, ABeatOrAnotherTermBeginsAnew) {
  LeaseWatch watch = AfterLook({}, Sight(4, "x"), At(0s), At(0s));
  watch = AfterLook(watch, Sight(4, "y"), At(10s), At(10s));
  EXPECT_FALSE(Judge(watch, 10s).may_claim);
  watch = AfterLook(watch, Sight(5, "y"), At(20s), At(20s));
  EXPECT_FALSE(Judge(watch, 20s).may_claim);
  watch = AfterLook(watch, Sight(5, "y"), At(27s), At(27s));
  EXPECT_TRUE(Judge(watch, 27s).may_claim);
}

TEST(JudgeLooker, TimeWithoutALookShowsNothing) {
  // All looks failed since, or this process was suspended.
  const LeaseWatch watch = AfterLook({}, Sight(4, "x"), At(0s), At(0s));
  EXPECT_FALSE(Judge(watch, 100s).may_claim);
  EXPECT_LE(Judge(watch, 100s).look_at, At(100s));
  EXPECT_FALSE(Judge(AfterLook(watch, Sight(4, "y"), At(100s), At(100s)), 100s).may_claim);
}

TEST(JudgeLooker, AnotherRunIsNamedUntilItStandsStill) {
  LeaseSight sight = Sight(4, "x");
  sight.run = "other";
  sight.text = "10.0.0.7:29400";
  LeaseWatch watch = AfterLook({}, sight, At(0s), At(0s));
  EXPECT_EQ(Judge(watch, 0s).reason, LookerReason::kHeldByAnotherRun);
  EXPECT_EQ(Judge(watch, 0s).detail,
            "another run of this job holds term 4 of the lease, and says '10.0.0.7:29400': stop "
            "that run first, or give this job another name");
  watch = AfterLook(watch, sight, At(7s), At(7s));
  EXPECT_TRUE(Judge(watch, 7s).may_claim);
}

}  // namespace
}  // namespace keel
