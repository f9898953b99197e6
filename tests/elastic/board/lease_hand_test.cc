// LeaseHand and its thread, with a lease in memory whose answers may be lost.
#include "elastic/board/lease_hand.h"

#include <gtest/gtest.h>

#include <atomic>

#include "elastic/board/lease_thread.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/memory_lease.h"

namespace keel {
namespace {

using Way = MemoryLease::Way;

LinkRecord Link(const std::string& by, int64_t number, const std::string& epoch) {
  return {{1, number, by + ":1", by}, by + ":2", epoch};
}

class LeaseHandTest : public testing::Test {
 protected:
  LeaseHand Hand(const std::string& who, Lease& lease) {
    return LeaseHand(lease, clock_, who, [this](const std::string&) { return found_; });
  }
  std::unique_ptr<MemoryLease> Open(const std::string& who) {
    return std::make_unique<MemoryLease>(place_, who, [this] { return way_; });
  }

  ManualClock clock_;
  MemoryLeasePlace place_;
  Way way_ = Way::kThrough;
  Reached found_ = Reached::kListener;
  const std::unique_ptr<MemoryLease> a_lease_ = Open("a"), b_lease_ = Open("b");
  LeaseHand a_ = Hand("a", *a_lease_), b_ = Hand("b", *b_lease_);
};

TEST_F(LeaseHandTest, OfTwoThatClaimOneNumberOneHasIt) {
  EXPECT_OK(a_.Claim(Link("a", 1, "e1"), 0));
  EXPECT_TRUE(a_.View().is_ours);
  EXPECT_EQ(a_.View().number, 1);
  EXPECT_EQ(b_.Claim(Link("b", 1, "x1"), 0).error().code, Code::kExists);
  const LinkView seen = b_.View();
  EXPECT_FALSE(seen.is_ours);
  EXPECT_FALSE(seen.is_over);
  EXPECT_TRUE(seen.is_there);
  EXPECT_EQ(seen.link, Link("a", 1, "e1"));
}

TEST_F(LeaseHandTest, AClaimWhoseAnswerWasLostIsNotTakenForALaterOne) {
  way_ = Way::kLost;
  EXPECT_FALSE(a_.Claim(Link("a", 1, "e1"), 0).ok());
  way_ = Way::kThrough;
  EXPECT_EQ(a_.Claim(Link("a", 1, "e2"), 0).error().code, Code::kStaleEpoch);
  EXPECT_FALSE(a_.View().is_ours);
  EXPECT_EQ(a_.View().link.epoch, "e1");
  EXPECT_OK(a_.Claim(Link("a", 1, "e2"), 1));
}

TEST_F(LeaseHandTest, WhoeverCoordinatesBeatsAndLosesTheLinkToWhoGoesOn) {
  const LeaseTask a_task{.own = Link("a", 1, "e1")}, b_task{.own = Link("b", 1, "e1")};
  EXPECT_OK(a_.Claim(*a_task.own, 0));
  clock_.Advance(kLeaseBeatInterval);
  EXPECT_EQ(a_.Poll(a_task), clock_.Monotonic() + kLeaseBeatInterval);
  EXPECT_EQ(place_.terms.at(1).beat, "a 1");
  b_.Poll(b_task);   // it has taken that epoch up
  EXPECT_TRUE(b_.View().is_ours);
  EXPECT_EQ(place_.Highest(), 2);
  clock_.Advance(kLeaseBeatInterval);
  a_.Poll({.own = Link("a", 1, "")});
  EXPECT_FALSE(a_.View().is_ours);
  EXPECT_EQ(a_.View().link.place.by, "b");
}

TEST_F(LeaseHandTest, AClaimIsOverOnceItsBeatStandsStillOrItsLauncherIsDead) {
  EXPECT_OK(a_.Claim(Link("a", 1, "e1"), 0));
  b_.Poll({.looks = true});
  EXPECT_FALSE(b_.View().is_over);
  clock_.Advance(kLeaseStillLimit);
  b_.Poll({.looks = true});
  EXPECT_TRUE(b_.View().is_over);
  clock_.Advance(kLeaseBeatInterval);
  a_.Poll({.own = Link("a", 1, "e1")});
  b_.Poll({.looks = true});
  EXPECT_FALSE(b_.View().is_over);
  found_ = Reached::kRefused;
  b_.Poll({.looks = true});
  EXPECT_TRUE(b_.View().is_over);
}

TEST_F(LeaseHandTest, WhatWasSeenLongAgoIsNotSeen) {
  EXPECT_FALSE(b_.View().is_seen);
  b_.Poll({.looks = true});
  EXPECT_TRUE(b_.View().is_seen);
  way_ = Way::kAway;
  clock_.Advance(kLeaseFormLimit);
  b_.Poll({.looks = true});
  EXPECT_FALSE(b_.View().is_seen);
  EXPECT_EQ(b_.View().detail, "the lease's place is away");
}

TEST_F(LeaseHandTest, AClaimThatCannotBeReadOnceIsReadByTheNextLook) {
  EXPECT_OK(a_.Claim(Link("a", 1, "e1"), 0));
  way_ = Way::kUnread;
  b_.Poll({.looks = true});
  EXPECT_EQ(b_.View().number, 1);
  EXPECT_EQ(b_.View().link, LinkRecord());
  EXPECT_EQ(b_.View().detail, "its text is damaged: input/output error");
  way_ = Way::kThrough;
  b_.Poll({.looks = true});
  EXPECT_EQ(b_.View().link, Link("a", 1, "e1"));
  way_ = Way::kUnread;
  b_.Poll({.looks = true});
  EXPECT_EQ(b_.View().link, Link("a", 1, "e1")) << "it is known since the look before";
}

TEST_F(LeaseHandTest, AnOpeningIsClaimedOnlyWhereHostsMeetByTheLease) {
  b_.Poll({.own = Link("b", 0, "")});
  EXPECT_EQ(place_.Highest(), 0);
  b_.Poll({.own = Link("b", 0, ""), .opens = true});
  EXPECT_EQ(place_.Highest(), 1);
}

TEST(LeaseThread, ShowsAClaimAtOnceAndTellsOfIt) {
  MemoryLeasePlace place;
  std::atomic<int> told = 0;
  LeaseThread thread(
      std::make_unique<MemoryLease>(place, "a", [] { return Way::kThrough; }), RealClock(), "a",
      [](const std::string&) { return Reached::kListener; },
      [&](const LinkView& view) { told += view.number > 0 ? 1 : 0; });
  thread.SetTask({.own = Link("a", 1, "")});
  for (int64_t number = 1; number <= 20; ++number) {
    const std::string epoch = "e" + std::to_string(number);
    ASSERT_OK(thread.Claim(Link("a", number, epoch), number - 1));
    EXPECT_EQ(thread.View().number, number);
    EXPECT_EQ(thread.View().link.epoch, epoch);
  }
  thread.Release();   // whoever was to be told of the claims has been
  EXPECT_GT(told.load(), 0);
  EXPECT_TRUE(place.terms.at(20).released);
}

}  // namespace
}  // namespace keel
