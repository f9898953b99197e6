// Whom a recheck compares with whom, and who is found to be wrong.
#include "trainer/loop/recheck_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/random.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

LaneResult ResultNumber(uint8_t number) {
  LaneResult result{.loss = static_cast<float>(number)};
  result.gradients.resize(2);
  result.gradients[1].bytes[3] = std::byte{number};
  return result;
}

std::vector<std::string> HostsOf(const std::vector<int>& numbers) {
  std::vector<std::string> hosts;
  for (const int number : numbers) hosts.push_back("host" + std::to_string(number));
  return hosts;
}

TEST(RecheckPlan, EverybodyChecksALaneOfAnotherHostAndEveryLaneIsChecked) {
  Random random(3);
  for (int round = 0; round < Rounds(200, 40); ++round) {
    const int world = static_cast<int>(2 + random.Uniform(6));
    const int lanes = static_cast<int>(1 + random.Uniform(12));
    const Placement placement = EvenPlacement(world, lanes);
    std::vector<int> numbers;
    for (int rank = 0; rank < world; ++rank) numbers.push_back(static_cast<int>(random.Uniform(3)));
    const std::vector<std::string> hosts = HostsOf(numbers);
    std::set<int> checked;
    for (uint64_t turn = 0; turn < 12u * 7u * 7u; ++turn) {
      const auto tasks = PlanRecheck(turn, placement, hosts);
      for (size_t rank = 0; rank < tasks.size(); ++rank) {
        const RecheckTask& task = tasks[rank];
        ASSERT_TRUE(task.other);
        checked.insert(*task.other);
        const auto owner = static_cast<size_t>(task.owner);
        EXPECT_EQ(tasks[owner].own, task.other);
        EXPECT_GE(*task.other, placement[owner].begin);
        EXPECT_LT(*task.other, placement[owner].end);
        bool others_have_lanes = false;
        bool other_hosts_have_lanes = false;
        for (size_t one = 0; one < hosts.size(); ++one) {
          others_have_lanes |= one != rank && !placement[one].empty();
          other_hosts_have_lanes |= hosts[one] != hosts[rank] && !placement[one].empty();
        }
        EXPECT_TRUE(!others_have_lanes || owner != rank);
        EXPECT_TRUE(!other_hosts_have_lanes || hosts[owner] != hosts[rank]);
      }
    }
    EXPECT_EQ(checked.size(), static_cast<size_t>(lanes)) << PlacementText(placement);
  }
}

TEST(RecheckPlan, OneAloneChecksItself) {
  const auto tasks = PlanRecheck(5, EvenPlacement(1, 3), {""});
  EXPECT_EQ(tasks, (std::vector<RecheckTask>{{.own = 2, .other = 2, .owner = 0}}));
}

TEST(RecheckPlan, WhoHasManyLanesChecksMoreOften) {
  EXPECT_EQ(UsualRecheckEvery(EvenPlacement(8, 8)), 200u);
  EXPECT_EQ(UsualRecheckEvery(EvenPlacement(3, 8)), 100u);
  EXPECT_EQ(UsualRecheckEvery({{0, 1}, {1, 8}}), 200u);
  EXPECT_EQ(UsualRecheckEvery(EvenPlacement(6, 4)), 200u);   // two of them have none
  EXPECT_EQ(UsualRecheckEvery(EvenPlacement(1, 1000)), 1u);
}

TEST(RecheckPlan, AWitnessIsOfAThirdHostOrThereIsOneBesideEach) {
  const auto witnesses = [](const std::vector<int>& numbers) {
    const std::vector<std::string> hosts = HostsOf(numbers);
    std::vector<RecheckTask> tasks(hosts.size());
    tasks[0] = {.other = 4, .owner = 1};
    tasks[1] = {.own = 4};
    std::vector<VoteRecord> records(hosts.size());
    records[0].other_lane = ResultNumber(1).All();
    records[1].own_lane = ResultNumber(1).All();
    EXPECT_TRUE(DisputesIn(tasks, records, hosts).empty());
    records[1].own_lane = ResultNumber(2).All();
    const auto disputes = DisputesIn(tasks, records, hosts);
    EXPECT_EQ(disputes.size(), 1u);
    EXPECT_EQ(disputes[0].lane, 4);
    EXPECT_EQ(disputes[0].owner, 1);
    EXPECT_EQ(disputes[0].checker, 0);
    return disputes[0].witnesses;
  };
  using Witnesses = std::vector<Witness>;
  EXPECT_EQ(witnesses({0, 1}), Witnesses());
  EXPECT_EQ(witnesses({0, 1, 1, 2, 2}), Witnesses({{3}}));
  EXPECT_EQ(witnesses({0, 1, 1}), Witnesses({{2, 1}}));
  EXPECT_EQ(witnesses({0, 1, 0}), Witnesses({{2, 0}}));
  EXPECT_EQ(witnesses({0, 1, 0, 0, 1}), Witnesses({{4, 1}, {2, 0}}));
  EXPECT_EQ(witnesses({0, 0, 0}), Witnesses({{2}}));
}

TEST(RecheckPlan, AllDisputesAreSeen) {
  const auto tasks = PlanRecheck(3, EvenPlacement(4, 4), HostsOf({0, 1, 2, 3}));
  std::vector<VoteRecord> records(4);
  for (size_t rank = 0; rank < 4; ++rank) {
    records[rank].own_lane = ResultNumber(static_cast<uint8_t>(*tasks[rank].own)).All();
    records[rank].other_lane = ResultNumber(static_cast<uint8_t>(*tasks[rank].other)).All();
  }
  EXPECT_TRUE(DisputesIn(tasks, records, HostsOf({0, 1, 2, 3})).empty());
  records[2].own_lane = records[2].other_lane = ResultNumber(99).All();
  EXPECT_EQ(DisputesIn(tasks, records, HostsOf({0, 1, 2, 3})).size(), 2u);
}

// All lanes are the first worker's, which compares with itself, and comes to two results.
TEST(RecheckPlan, WhatOthersSayIsJudgedBeforeAComparisonWithOneself) {
  const auto hosts = HostsOf({0, 1, 2});
  const auto tasks = PlanRecheck(0, {{0, 1}, {1, 1}, {1, 1}}, hosts);
  EXPECT_EQ(tasks[0].owner, 0);
  std::vector<VoteRecord> records(3);
  records[0].own_lane = ResultNumber(1).All();
  records[0].other_lane = ResultNumber(2).All();
  records[1].other_lane = records[2].other_lane = ResultNumber(3).All();
  const auto disputes = DisputesIn(tasks, records, hosts);
  ASSERT_EQ(disputes.size(), 3u);
  EXPECT_EQ(disputes[0].checker, 1);
  EXPECT_EQ(disputes[0].witnesses, (std::vector<Witness>{{2}}));
  EXPECT_EQ(disputes[2].checker, 0);
}

// A whole host may compute wrongly, whichever of its workers does.
TEST(RecheckPlan, AWitnessDoesNotSpeakForAWorkerOfItsOwnHost) {
  const Dispute dispute{.lane = 1, .owner = 0, .checker = 2, .witnesses = {{1, 0}, {3, 2}}};
  const auto wrong = [&dispute](const std::string& letters) {
    const auto result = [&letters](size_t i) {
      return ResultNumber(static_cast<uint8_t>(letters[i]));
    };
    return Decide(dispute, {.owner = result(0), .owner_again = result(0), .checker = result(1),
                            .checker_again = result(1), .witnesses = {result(2), result(3)}})
        .wrong.value_or(-1);
  };
  EXPECT_EQ(wrong("abab"), -1);   // host against host
  EXPECT_EQ(wrong("abbb"), 0);
  EXPECT_EQ(wrong("abaa"), 2);
  EXPECT_EQ(wrong("abba"), -1);   // each one's neighbour is for the other one
  EXPECT_EQ(wrong("abcb"), -1);
  EXPECT_EQ(wrong("abca"), 2);
}

// Each letter is one result: of the owner, once more; of the checker, once more; of a third host's
// worker, if there is one. The last letter says who is wrong.
TEST(RecheckPlan, WhoIsWrong) {
  const Dispute alone_they_are{.lane = 1, .owner = 5, .checker = 6};
  const Dispute with_a_third_host{.lane = 1, .owner = 5, .checker = 6, .witnesses = {{7}}};
  const std::map<std::string, char> cases = {
      {"aabb-", 'n'}, {"aabc-", 'c'}, {"abcc-", 'o'}, {"abcd-", 'n'},
      {"aabbb", 'o'}, {"aabba", 'c'}, {"abbbb", 'o'}, {"aabca", 'c'}, {"aabcb", 'o'},
      {"aabbc", 'n'}, {"aabcd", 'c'}, {"abccd", 'o'}};
  for (const auto& [letters, wrong] : cases) {
    const auto result = [&letters = letters](size_t i) {
      return ResultNumber(static_cast<uint8_t>(letters[i]));
    };
    Testimony testimony{.owner = result(0), .owner_again = result(1), .checker = result(2),
                        .checker_again = result(3)};
    const bool is_third = letters[4] != '-';
    if (is_third) testimony.witnesses = {result(4)};
    const Verdict verdict = Decide(is_third ? with_a_third_host : alone_they_are, testimony);
    EXPECT_EQ(verdict.wrong.value_or(0), wrong == 'o' ? 5 : wrong == 'c' ? 6 : 0) << letters;
    EXPECT_FALSE(verdict.reason.empty());
  }
  const Verdict alone = Decide({.lane = 1, .owner = 3, .checker = 3},
                               {.owner = ResultNumber(1), .owner_again = ResultNumber(1),
                                .checker = ResultNumber(2), .checker_again = ResultNumber(1)});
  EXPECT_EQ(alone.wrong, std::nullopt);
}

TEST(RecheckPlan, AMinorityIsWrong) {
  const auto of = [](const std::string& letters) {
    std::vector<std::optional<Digest>> digests;
    for (const char letter : letters) {
      digests.push_back(ResultNumber(static_cast<uint8_t>(letter)).All());
    }
    return MinorityOf(digests);
  };
  EXPECT_FALSE(of("aaa").differ);
  EXPECT_FALSE(of("a").differ);
  EXPECT_EQ(of("aab").wrong, std::vector<int>{2});
  EXPECT_EQ(of("baa").wrong, std::vector<int>{0});
  EXPECT_EQ(of("baaca").wrong, (std::vector<int>{0, 3}));
  for (const char* const letters : {"ab", "aabb", "abc", "aabc"}) {
    EXPECT_TRUE(of(letters).differ) << letters;
    EXPECT_TRUE(of(letters).wrong.empty()) << letters;
  }
}

TEST(LaneResult, DecodesToWhatWasEncodedAndNamesDifferences) {
  LaneResult a = ResultNumber(1);
  LaneResult b = ResultNumber(2);
  const auto bytes = EncodeResults({a, b});
  const auto decoded = DecodeResults(bytes, 2);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, (std::vector<LaneResult>{a, b}));
  EXPECT_EQ(DecodeResults(std::span(bytes).first(bytes.size() - 1), 2).error().code,
            Code::kCorrupt);
  EXPECT_EQ(DifferencesOf(a, a, {}), "");
  EXPECT_EQ(DifferencesOf(a, b, {"weight", "bias"}), "the loss, the gradient of bias");
  a.buffers.bytes[0] = std::byte{1};
  a.gradients[0].bytes[0] = std::byte{1};
  EXPECT_EQ(DifferencesOf(a, b, {"weight", "bias"}),
            "the loss, the buffers, the gradient of weight and 1 more");
}

TEST(LaneResult, OneThatIsNotANumberEqualsItself) {
  LaneResult nan = ResultNumber(1);
  nan.loss = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(nan, nan);
  LaneResult zero = ResultNumber(1);
  zero.loss = 0.0f;
  LaneResult minus = zero;
  minus.loss = -0.0f;
  EXPECT_FALSE(zero == minus);
}

}  // namespace
}  // namespace keel
