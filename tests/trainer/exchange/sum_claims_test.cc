// Who added wrongly is told by those who have nothing to do with it, and by nobody else.
#include "trainer/exchange/sum_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Digest Sum(int value) {
  Digest digest;
  digest.bytes[0] = static_cast<std::byte>(value);
  return digest;
}

// So many workers on each host; all come to the same sums.
SumClaims Agreed(const std::vector<int>& workers, int turn) {
  SumClaims claims;
  for (size_t host = 0; host < workers.size(); ++host) {
    for (int worker = 0; worker < workers[host]; ++worker) {
      claims.hosts.push_back("host" + std::to_string(host));
      claims.members.push_back(claims.hosts.back() + "/" + std::to_string(worker));
    }
  }
  claims.made.turn = turn;
  for (size_t slice = 0; slice < claims.members.size(); ++slice) {
    claims.made.slices.push_back(Sum(static_cast<int>(slice) + 1));
  }
  claims.made.again = claims.made.slices;
  claims.inputs.assign(claims.members.size(), Sum(7));
  claims.inputs_again = claims.inputs;
  return claims;
}

// That member comes to other sums: of its own slice, and of the one that it adds, too.
void Spoil(SumClaims& claims, int member, int value) {
  const int world = static_cast<int>(claims.members.size());
  claims.made.slices[static_cast<size_t>(member)] = Sum(value);
  claims.made.again[static_cast<size_t>((member + claims.made.turn) % world)] = Sum(value + 1);
}

int HostsApart(const SumClaims& claims) {
  const size_t world = claims.members.size();
  int apart = 0;
  for (size_t rank = 0; rank < world; ++rank) {
    const size_t slice = (rank + static_cast<size_t>(claims.made.turn)) % world;
    apart += int{claims.hosts[rank] != claims.hosts[slice]};
  }
  return apart;
}

TEST(SumClaims, AnotherHostAddsTheSecondTime) {
  for (const auto& workers : {std::vector{1, 1, 1}, std::vector{2, 2}, std::vector{4, 4, 4}}) {
    for (uint64_t turn = 0; turn < 20; ++turn) {
      SumClaims claims = Agreed(workers, 0);
      claims.made.turn = TurnOfSums(turn, claims.hosts, 0);
      EXPECT_EQ(HostsApart(claims), static_cast<int>(claims.members.size()));
      // The same once more gives others to each one.
      EXPECT_NE(TurnOfSums(turn, claims.hosts, 1), claims.made.turn);
      EXPECT_NE(TurnOfSums(turn, claims.hosts, 2), TurnOfSums(turn, claims.hosts, 1));
    }
  }
  EXPECT_EQ(TurnOfSums(5, {"a"}, 0), 0);
  EXPECT_EQ(TurnOfSums(5, {"a", "b"}, 0), 1);
  EXPECT_EQ(TurnOfSums(5, {"a", "b"}, 1), 1);
}

TEST(SumClaims, EveryOtherWorkerComesToAddASlice) {
  const std::vector<std::string> hosts{"a", "b", "c", "d"};
  std::vector<int> turns;
  for (uint64_t turn = 0; turn < 3; ++turn) turns.push_back(TurnOfSums(turn, hosts, 0));
  std::sort(turns.begin(), turns.end());
  EXPECT_THAT(turns, ElementsAre(1, 2, 3));
}

TEST(SumClaims, WhoeverIsWrongOnceIsNamed) {
  for (const auto& workers : {std::vector{1, 1}, std::vector{1, 1, 1}, std::vector{3},
                              std::vector{2, 2, 2}}) {
    const int world = static_cast<int>(Agreed(workers, 0).members.size());
    for (int wrong = 0; wrong < world; ++wrong) {
      for (uint64_t turn = 0; turn < 5; ++turn) {
        SumClaims before = Agreed(workers, 0);
        before.made.turn = TurnOfSums(turn, before.hosts, 0);
        Spoil(before, wrong, 100);
        SumClaims now = Agreed(workers, TurnOfSums(turn, before.hosts, 1));
        const SumVerdict verdict = DecideSums(before, now);
        EXPECT_THAT(verdict.wrong, ElementsAre(now.members[static_cast<size_t>(wrong)]))
            << world << " " << turn;
      }
    }
  }
}

TEST(SumClaims, WhoeverIsAlwaysWrongIsNamedWithAThirdHost) {
  for (const auto& workers : {std::vector{1, 1, 1}, std::vector{3}, std::vector{2, 2, 2}}) {
    const int world = static_cast<int>(Agreed(workers, 0).members.size());
    for (int wrong = 0; wrong < world; ++wrong) {
      for (const int value : {100, 110}) {
        SumClaims before = Agreed(workers, 0);
        before.made.turn = TurnOfSums(3, before.hosts, 0);
        Spoil(before, wrong, 100);
        SumClaims now = Agreed(workers, TurnOfSums(3, before.hosts, 1));
        Spoil(now, wrong, value);
        const SumVerdict verdict = DecideSums(before, now);
        EXPECT_THAT(verdict.wrong, ElementsAre(now.members[static_cast<size_t>(wrong)]));
      }
    }
  }
}

TEST(SumClaims, OfTwoOnlyTheOneThatDoesNotRepeatItselfIsNamed) {
  SumClaims before = Agreed({1, 1}, 1);
  before.made.slices[0] = Sum(100);
  SumClaims now = Agreed({1, 1}, 1);
  now.made.slices[0] = Sum(100);
  EXPECT_THAT(DecideSums(before, now).wrong, IsEmpty());
  EXPECT_THAT(DecideSums(before, now).reason, HasSubstr("its own sum"));
  now.made.slices[0] = Sum(101);
  EXPECT_THAT(DecideSums(before, now).wrong, ElementsAre("host0/0"));
}

// A host that is wrong in both of its workers, in the same way.
TEST(SumClaims, OneHostProvesNothingAgainstAnother) {
  SumClaims before = Agreed({2, 1}, 1);   // slice 0 is added by host0/0, and by host1/0
  before.made.slices[0] = Sum(100);
  SumClaims now = Agreed({2, 1}, 2);      // ... and by host0/1
  now.made.slices[0] = now.made.again[0] = Sum(100);
  EXPECT_THAT(DecideSums(before, now).wrong, IsEmpty());
}

TEST(SumClaims, WhatChangedBeforeItWasAddedIsNobodysFault) {
  SumClaims before = Agreed({1, 1, 1}, 1);
  before.made.slices[0] = Sum(100);
  before.inputs[0] = Sum(8);
  SumClaims now = Agreed({1, 1, 1}, 2);
  EXPECT_THAT(DecideSums(before, now).wrong, IsEmpty());
  EXPECT_THAT(DecideSums(before, now).reason, HasSubstr("before that"));
  before.inputs[0] = std::nullopt;
  EXPECT_THAT(DecideSums(before, now).wrong, IsEmpty());
}

// The first time a lane was wrong, so that all sums were others.
TEST(SumClaims, WhoeverHadOtherInputsTheFirstTimeIsNotNamed) {
  SumClaims before = Agreed({1, 1, 1}, 1);
  before.made.slices[0] = Sum(100);   // nobody's second sum is what the other one had then
  before.made.again[0] = Sum(101);
  EXPECT_THAT(DecideSums(before, Agreed({1, 1, 1}, 2)).wrong, IsEmpty());
}

TEST(SumClaims, WhoAgreesIsNeverNamed) {
  Random random(16);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> workers;
    for (uint64_t host = 0; host < 1 + random.Uniform(4); ++host) {
      workers.push_back(1 + static_cast<int>(random.Uniform(3)));
    }
    const uint64_t turn = random.Uniform(50);
    SumClaims before = Agreed(workers, 0);
    before.made.turn = TurnOfSums(turn, before.hosts, 0);
    SumClaims now = Agreed(workers, TurnOfSums(turn, before.hosts, 1));
    const int wrong = static_cast<int>(random.Uniform(before.members.size()));
    for (SumClaims* const one : {&before, &now}) {
      if (random.Chance(0.5)) Spoil(*one, wrong, 100 + 10 * static_cast<int>(random.Uniform(3)));
    }
    for (const std::string& member : DecideSums(before, now).wrong) {
      EXPECT_EQ(member, before.members[static_cast<size_t>(wrong)]);
    }
  }
}

TEST(SumClaims, WhoSumsDifferIsTold) {
  SumClaims claims = Agreed({1, 1, 1}, 1);
  EXPECT_THAT(DisputedBy(claims), IsEmpty());
  claims.made.again[2] = Sum(100);   // by the one before it
  EXPECT_THAT(DisputedBy(claims), ElementsAre("host1/0", "host2/0"));
  EXPECT_NE(claims.DigestOfAll(), Agreed({1, 1, 1}, 1).DigestOfAll());
}

}  // namespace
}  // namespace keel
