// LeaseRule: each line of the rule by an example.
#include "elastic/decisions/lease_rule.h"

#include <gtest/gtest.h>

#include "elastic/protocol/limits.h"
#include "tests/elastic/decisions/letter_epoch.h"

namespace keel {
namespace {

// A host that met that epoch, and found it in the lease.
HostPast Met(const std::string& host, int met, const std::string& linked = "",
             const std::string& shared = "") {
  HostPast past{host, {}};
  past.seen.met = "e" + std::to_string(met);
  past.seen.linked = linked;
  past.seen.shared = shared;
  return past;
}

// The claim of host `by` for that epoch.
LinkView Claim(int64_t number, const CountedEpoch& epoch, const std::string& by) {
  LinkView lease;
  lease.is_seen = true;
  lease.number = number;
  lease.link.place = {1, epoch.number, by + ":1", by};
  lease.link.epoch = epoch.id;
  lease.detail = "it is held";
  return lease;
}
LinkView Empty() {
  LinkView lease;
  lease.is_seen = true;
  return lease;
}

LeaseVerdict Decide(const LinkView& lease, const QuorumView& view, const std::string& proposed,
                    Duration waited = Duration(0)) {
  return DecideLease(lease, view, DecideQuorum(view, LetterEpoch(1, proposed).hosts), waited);
}

#define EXPECT_FORMS(verdict_, claims_)                \
  do {                                                 \
    const LeaseVerdict verdict = verdict_;             \
    EXPECT_TRUE(verdict.may_form) << verdict.detail;   \
    EXPECT_EQ(verdict.claims, claims_);                \
  } while (false)
#define EXPECT_WAITS(verdict_, words)                                                    \
  do {                                                                                   \
    const LeaseVerdict verdict = verdict_;                                               \
    EXPECT_FALSE(verdict.may_form) << verdict.detail;                                    \
    EXPECT_NE(verdict.detail.find(words), std::string::npos) << verdict.detail;          \
  } while (false)

TEST(LeaseRule, TheFirstEpochIsClaimedToo) {
  const QuorumView view{.here = {{"a", {}}, {"b", {}}}};
  EXPECT_FORMS(Decide(Empty(), view, "ab"), true);
  LinkView away;
  away.detail = "no such directory";
  EXPECT_WAITS(Decide(away, view, "ab"), "cannot be used: no such directory");
}

TEST(LeaseRule, HostsThatWereInNoEpochDoNotBeginAJobThatAnotherHolds) {
  const QuorumView view{.here = {{"x", {}}}};
  LinkView lease = Claim(4, LetterEpoch(3, "ab"), "a");
  EXPECT_WAITS(Decide(lease, view, "x"), "the job goes on at term 1 at 'a:1' (it is held)");
  lease.is_over = true;
  EXPECT_FORMS(Decide(lease, view, "x"), true);
}

TEST(LeaseRule, AHostOfTheNewestEpochThatHasNotToldOfItProvesNothing) {
  // It may have entered that epoch elsewhere since it wrote its record here.
  QuorumView view{.here = {Met("b", 2, "e2", "e2")}, .epochs = {LetterEpoch(2, "ab")}};
  EXPECT_WAITS(Decide(Claim(4, LetterEpoch(3, "ab"), "a"), view, "b", kLeaseCourtesy),
               "the job goes on at");
}

TEST(LeaseRule, BelowAQuorumTheOtherOfTwoGoesOnAfterAWhile) {
  const QuorumView view{.here = {Met("b", 3, "e3", "e3")}, .epochs = {LetterEpoch(3, "ab")}};
  const LinkView lease = Claim(4, LetterEpoch(3, "ab"), "a");
  EXPECT_WAITS(Decide(lease, view, "b"), "so these hosts go on if nobody else does");
  EXPECT_FORMS(Decide(lease, view, "b", kLeaseCourtesy), true);
}

TEST(LeaseRule, BelowAQuorumNobodyGoesOnPastHostsThatDoNotKnowTheLease) {
  // c has not found epoch 3 in the lease: with b it would form another one without claiming it.
  const QuorumView view{.here = {Met("a", 3, "e3")}, .epochs = {LetterEpoch(3, "abc")}};
  EXPECT_WAITS(Decide(Claim(4, LetterEpoch(3, "abc"), "a"), view, "a", kLeaseCourtesy),
               "not all hosts of that epoch have found it in the job's lease");
}

TEST(LeaseRule, WhatWasSharedLongAgoCountsNoMore) {
  // b was put into epoch 4 since, which others may have met; not all of those found it there.
  HostPast past = Met("b", 3, "e3", "e3");
  past.seen.tried = {"e4"};
  const QuorumView view{.here = {past}, .epochs = {LetterEpoch(3, "ab"), LetterEpoch(4, "ab")}};
  EXPECT_WAITS(Decide(Claim(5, LetterEpoch(4, "ab"), "a"), view, "b", kLeaseCourtesy),
      "others may");
}

TEST(LeaseRule, AMajorityThatKnowsTheLeaseClaimsAsWell) {
  QuorumView view{.here = {Met("b", 3, "e3"), Met("c", 3)}, .epochs = {LetterEpoch(3, "abc")}};
  EXPECT_FORMS(Decide(Claim(4, LetterEpoch(3, "abc"), "a"), view, "bc"), true);
  // a went on alone meanwhile: epoch 3 stands still, and that one runs.
  EXPECT_WAITS(Decide(Claim(5, LetterEpoch(4, "a"), "a"), view, "bc"), "the job goes on at");
  LinkView away;
  EXPECT_WAITS(Decide(away, view, "bc"), "cannot be used");
  EXPECT_WAITS(Decide(Empty(), view, "bc"), "it is not the lease of that host");
}

TEST(LeaseRule, AMajorityThatNeverFoundItsEpochInTheLeaseNeedsNone) {
  const QuorumView view{.here = {Met("b", 3), Met("c", 3)}, .epochs = {LetterEpoch(3, "abc")}};
  LinkView away;
  EXPECT_FORMS(Decide(away, view, "bc"), false);
  EXPECT_FORMS(Decide(Empty(), view, "bc"), true);   // from then on it has
  EXPECT_FORMS(Decide(Claim(2, LetterEpoch(9, "xy"), "x"), view, "bc"), false);
}

TEST(LeaseRule, TheHolderGoesOnFromItsOwnClaimOnlyWithAHostOfIt) {
  const QuorumView view{.here = {Met("a", 3, "e3", "e3"), {"d", {}}},
                        .epochs = {LetterEpoch(3, "abc")}};
  LinkView lease = Claim(4, LetterEpoch(3, "abc"), "a");
  lease.is_ours = true;
  EXPECT_FORMS(Decide(lease, view, "ad", kLeaseCourtesy), true);
  const QuorumView strangers{.here = {{"d", {}}}};
  EXPECT_WAITS(Decide(lease, strangers, "d"), "the job goes on at");
  lease.link.epoch.clear();   // it has only opened the job
  EXPECT_FORMS(Decide(lease, strangers, "d"), true);
}

TEST(LeaseRule, ABoardIsLeftForOneThatCanBeReachedAndHasTheLease) {
  const QuorumView view{.here = {{"x", {}}}};
  LinkView lease = Claim(4, LetterEpoch(3, "ab"), "a");
  EXPECT_FALSE(HeldElsewhere(lease, view));
  lease.is_there = true;
  ASSERT_TRUE(HeldElsewhere(lease, view));
  EXPECT_EQ(HeldElsewhere(lease, view)->address, "a:1");
  EXPECT_FALSE(HeldElsewhere(lease, {.here = {Met("b", 3)}, .epochs = {LetterEpoch(3, "ab")}}));
  lease.is_over = true;
  EXPECT_FALSE(HeldElsewhere(lease, view));
  lease.is_over = false;
  lease.is_ours = true;
  EXPECT_FALSE(HeldElsewhere(lease, view));
}

}  // namespace
}  // namespace keel
