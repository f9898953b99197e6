// Quorum: small cases by hand. tests/elastic/decisions/quorum_walk_test.cc has the large ones.
#include "elastic/decisions/quorum.h"

#include <gtest/gtest.h>

#include "tests/elastic/decisions/letter_epoch.h"

namespace keel {
namespace {

HostPast Met(const std::string& host, int met, std::vector<std::string> tried = {}) {
  return {host, {"e" + std::to_string(met), std::move(tried), {}}};
}

// A host that was inside the epoch when the process of its coordinator died.
HostPast Witness(const std::string& host, int inside, const std::string& who = "a") {
  HostPast past = Met(host, inside);
  past.seen.lost =
      LostCoordinator{who, "e" + std::to_string(inside), inside - 1, Duration(0), true};
  return past;
}

QuorumVerdict Decide(const QuorumView& view, const std::string& proposed) {
  return DecideQuorum(view, LetterEpoch(1, proposed).hosts);
}

#define EXPECT_MAY(view, proposed, why)                        \
  do {                                                         \
    const QuorumVerdict verdict = Decide(view, proposed);      \
    EXPECT_TRUE(verdict.may_form) << verdict.detail;           \
    EXPECT_EQ(verdict.reason, why) << verdict.detail;          \
  } while (false)
#define EXPECT_MAY_NOT(view, proposed, words)                          \
  do {                                                                 \
    const QuorumVerdict verdict = Decide(view, proposed);              \
    EXPECT_FALSE(verdict.may_form) << verdict.detail;                  \
    EXPECT_EQ(verdict.reason, QuorumReason::kTooFew) << verdict.detail; \
    EXPECT_EQ(verdict.detail, words);                                  \
  } while (false)

TEST(Quorum, HostsThatWereInNoEpochFormTheFirst) {
  const QuorumView view{.here = {{"a", {}}, {"b", {}}}};
  EXPECT_MAY(view, "ab", QuorumReason::kFirst);
  EXPECT_MAY(view, "a", QuorumReason::kFirst);
  EXPECT_EQ(Decide(view, "a").number, 1);
}

TEST(Quorum, OfTwoHostsTheCoordinatorGoesOnWithoutTheOther) {
  QuorumView view{.here = {Met("a", 1)}, .epochs = {LetterEpoch(1, "ab")}};
  EXPECT_MAY(view, "a", QuorumReason::kCastingVote);   // b is silent
  EXPECT_EQ(Decide(view, "a").detail, "1 of 2 hosts of epoch 1 (with the casting vote)");
  EXPECT_EQ(Decide(view, "a").number, 2);
  view.gone = {Met("b", 1)};                            // b has left, or is known to have died
  EXPECT_MAY(view, "a", QuorumReason::kMajority);
}

TEST(Quorum, OfTwoHostsTheOtherGoesOnOnlyWhereItSawTheCoordinatorDie) {
  QuorumView view{.here = {Met("b", 1)}, .epochs = {LetterEpoch(1, "ab")}};
  EXPECT_MAY_NOT(view, "b", "1 of 2 hosts of epoch 1 (without the casting vote)");
  EXPECT_EQ(Decide(view, "b").missing, std::vector<std::string>{"a"});
  view.here = {Witness("b", 1)};
  EXPECT_MAY(view, "b", QuorumReason::kMajority);
  EXPECT_EQ(Decide(view, "b").detail,
            "1 of 1 host of epoch 1 (1 known to be gone; needed: 1)");
}

// It was killed so soon after it had formed the next epoch that nobody knows whether that was met.
TEST(Quorum, WhoSawTheCoordinatorDieInALaterEpochOfItsOwnKnowsItOfTheFormerOne) {
  HostPast b = Witness("b", 2), c = Witness("c", 2);
  b.seen.met = "e1";
  c.seen.met = "";
  b.seen.tried = c.seen.tried = {"e2"};
  QuorumView view{.here = {b, c}, .epochs = {LetterEpoch(1, "ab"), LetterEpoch(2, "abc")}};
  EXPECT_MAY(view, "bc", QuorumReason::kMajority);
  view.epochs[0].coordinator = "z";   // a only took that one up
  EXPECT_MAY_NOT(view, "bc", "1 of 2 hosts of epoch 1 (without the casting vote)");
}

TEST(Quorum, AWitnessIsBelievedUnderEachOfItsConditionsOnly) {
  const std::string none = "1 of 2 hosts of epoch 1 (without the casting vote)";
  QuorumView view{.here = {Witness("b", 1)}, .epochs = {LetterEpoch(1, "ab")}};
  LostCoordinator& lost = *view.here[0].seen.lost;
  const LostCoordinator good = lost;
  lost.who = "b";                     // another one had formed the epoch
  EXPECT_MAY_NOT(view, "b", none);
  lost = good;
  lost.refused = false;               // the connection may have been cut
  EXPECT_MAY_NOT(view, "b", none);
  lost = good;
  lost.outside = 1;                   // a newer epoch may have been formed without it
  EXPECT_MAY_NOT(view, "b", none);
  lost = good;
  lost.beat_age = view.beat_limit;    // the coordinator may have taken it for lost
  EXPECT_MAY_NOT(view, "b", none);
  lost.beat_age = view.beat_limit - Duration(1);
  EXPECT_MAY(view, "b", QuorumReason::kMajority);
  lost = good;
  lost.inside = "";                   // it was inside none
  EXPECT_MAY_NOT(view, "b", none);
}

TEST(Quorum, AWitnessSpeaksOfItsOwnEpochOnly) {
  // b saw the coordinator of e1 die, and another epoch of the same one was met elsewhere.
  QuorumView view{.here = {Witness("b", 1), Met("c", 2)},
                  .epochs = {LetterEpoch(1, "abc"), LetterEpoch(2, "ac")}};
  EXPECT_MAY_NOT(view, "bc", "1 of 2 hosts of epoch 2 (without the casting vote)");
}

TEST(Quorum, AWitnessIsAmongThoseWhoFormTheEpoch) {
  QuorumView view{.here = {Met("b", 1), Witness("c", 1)}, .epochs = {LetterEpoch(1, "abc")}};
  EXPECT_MAY_NOT(view, "b", "1 of 3 hosts of epoch 1 (needed: 2)");
  EXPECT_MAY_NOT(view, "c", "1 of 2 hosts of epoch 1 "
                            "(1 known to be gone; without the casting vote)");
  EXPECT_MAY(view, "bc", QuorumReason::kMajority);
}

TEST(Quorum, OfThreeHostsTwoGoOnWhateverBecameOfTheThird) {
  const QuorumView view{.here = {Met("a", 1), Met("b", 1), Met("c", 1)},
                        .epochs = {LetterEpoch(1, "abc")}};
  EXPECT_MAY(view, "ab", QuorumReason::kMajority);
  EXPECT_MAY(view, "bc", QuorumReason::kMajority);
  EXPECT_MAY_NOT(view, "a", "1 of 3 hosts of epoch 1 (needed: 2)");
}

TEST(Quorum, TheVoteOfADeadCoordinatorGoesToTheFirstHeir) {
  // Of five, the coordinator died, and two of the other four are silent.
  QuorumView view{.here = {Witness("b", 1), Witness("c", 1)}, .epochs = {LetterEpoch(1, "abcde")}};
  EXPECT_MAY(view, "bc", QuorumReason::kCastingVote);
  view.here = {Witness("c", 1), Witness("d", 1)};
  EXPECT_MAY_NOT(view, "cd", "2 of 4 hosts of epoch 1 "
                             "(1 known to be gone; without the casting vote)");
  view.gone = {Met("b", 1)};   // then c has the vote, and three are counted
  EXPECT_MAY(view, "cd", QuorumReason::kMajority);
}

TEST(Quorum, ACoordinatorOutsideItsEpochLeavesTheVoteToTheFirstHost) {
  CountedEpoch epoch = LetterEpoch(1, "bc");
  epoch.coordinator = "a";
  const QuorumView view{.here = {Met("a", 1), Met("b", 1), Met("c", 1)}, .epochs = {epoch}};
  EXPECT_MAY(view, "ab", QuorumReason::kCastingVote);
  EXPECT_MAY_NOT(view, "ac", "1 of 2 hosts of epoch 1 (without the casting vote)");
}

TEST(Quorum, EachEpochThatWasTriedSinceCounts) {
  // a and b were put into e2 and have not met: e2 may run. So c and d, who know of e1 alone, have a
  // majority together with a, and a has no majority of e2.
  QuorumView view{.here = {Met("a", 1, {"e2"}), Met("c", 1), Met("d", 1)},
                  .epochs = {LetterEpoch(1, "cabd"), LetterEpoch(2, "bea")}};
  EXPECT_MAY_NOT(view, "acd", "1 of 3 hosts of epoch 2 (needed: 2)");
  EXPECT_EQ(Decide(view, "acd").number, 3);
  view.here.push_back(Met("b", 1));
  EXPECT_MAY(view, "abcd", QuorumReason::kMajority);
}

TEST(Quorum, WhatAHostToldBeforeItDiedHereCountsStill) {
  const QuorumView view{.here = {Met("a", 1), Met("b", 1)},
                        .gone = {Met("c", 1, {"e2"})},
                        .epochs = {LetterEpoch(1, "abc"), LetterEpoch(2, "dec")}};
  EXPECT_MAY_NOT(view, "ab", "0 of 2 hosts of epoch 2 (1 known to be gone; needed: 2)");
}

TEST(Quorum, OnlyTheNewestEpochThatWasMetCounts) {
  const QuorumView view{.here = {Met("a", 5), Met("d", 1)},
                        .epochs = {LetterEpoch(1, "bcdef"), LetterEpoch(5, "a")}};
  EXPECT_MAY(view, "ad", QuorumReason::kMajority);
  EXPECT_MAY_NOT(view, "d", "0 of 1 host of epoch 5 (needed: 1)");
}

TEST(Quorum, OneLossAfterTheOtherIsSurvivedDownToOne) {
  const std::string all = "abcdefg";
  // The coordinator dies each time, and the next heir takes over.
  for (size_t lost = 0; lost + 1 < all.size(); ++lost) {
    const std::string before = all.substr(lost), after = all.substr(lost + 1);
    const int number = static_cast<int>(lost) + 1;
    QuorumView view{.epochs = {LetterEpoch(number, before)}};
    for (const char host : after) {
      view.here.push_back(Witness(std::string(1, host), number, all.substr(lost, 1)));
    }
    EXPECT_MAY(view, after, QuorumReason::kMajority);
  }
  // The last one falls silent each time, down to the coordinator alone.
  for (size_t left = all.size(); left > 1; --left) {
    const std::string before = all.substr(0, left), after = all.substr(0, left - 1);
    QuorumView view{.epochs = {LetterEpoch(1, before)}};
    for (const char host : after) view.here.push_back(Met(std::string(1, host), 1));
    EXPECT_TRUE(Decide(view, after).may_form) << before;
  }
  // The coordinator falls silent each time: two are left, of which the other cannot know.
  EXPECT_MAY(QuorumView({.here = {Met("f", 1), Met("g", 1)},
                         .epochs = {LetterEpoch(1, "efg")}}), "fg",
             QuorumReason::kMajority);
  EXPECT_MAY_NOT(QuorumView({.here = {Met("g", 2)}, .epochs = {LetterEpoch(2, "fg")}}), "g",
                 "1 of 2 hosts of epoch 2 (without the casting vote)");
}

TEST(Quorum, AllOthersAreKnownToBeGone) {
  const QuorumView view{.here = {{"x", {}}},
                        .gone = {Met("a", 1), Met("b", 1)},
                        .epochs = {LetterEpoch(1, "ab")}};
  EXPECT_MAY(view, "x", QuorumReason::kMajority);
}

TEST(Quorum, AnEpochWhoseHostsNobodyToldForbids) {
  const QuorumView view{.here = {Met("a", 1, {"e2"})}, .epochs = {LetterEpoch(1, "a")}};
  const QuorumVerdict verdict = Decide(view, "a");
  EXPECT_FALSE(verdict.may_form);
  EXPECT_EQ(verdict.reason, QuorumReason::kUnknownEpoch);
  EXPECT_EQ(verdict.detail, "nobody has told the hosts of epoch e2");
}

TEST(QuorumDeath, AHostThatIsNotHereIsABug) {
  const QuorumView view{.here = {Met("a", 1)}, .epochs = {LetterEpoch(1, "ab")}};
  EXPECT_DEATH(Decide(view, "ab"), "host b is not registered here");
}

}  // namespace
}  // namespace keel
