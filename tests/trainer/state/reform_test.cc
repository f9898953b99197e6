// Who applies, who receives and who goes on, for all reports that survivors of a step can give.
#include "trainer/state/reform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

MemberReport At(int64_t step, bool pending = false) {
  MemberReport report;
  report.step = step;
  report.pending = pending;
  report.layout = "l";
  report.trail = step < 0 ? "" : "t" + std::to_string(step);
  return report;
}

TEST(Reform, ReportsAreReadBackBitForBit) {
  MemberReport report = At(7, true);
  report.numbers = "{\"step\":7}";
  report.compared = true;
  report.by_parts = true;
  report.inexact_since = 3;
  report.fingerprint = "threads=1";
  report.together = "evaluation=none";
  report.beginning = "--init-from=none";
  report.directory = "0123456789abcdef";
  report.save_every = 7;
  report.codec = "zstd";
  report.config = {{"lr", "0.1"}, {"name", "a \"b\""}};
  report.last_losses = {0.1f, -0.0f, std::numeric_limits<float>::quiet_NaN(), INFINITY};
  EXPECT_EQ(*ParseReport(ReportText(report)), report);
  for (const char* text : {"", "{}", "[]", "{\"step\":7}", "{\"step\":\"7\"}"}) {
    EXPECT_EQ(ParseReport(text).error().code, Code::kCorrupt) << text;
  }
}

TEST(Reform, LanesAreComputedTwiceAsOftenAsTheFirstSaysButNotIfAnyoneNeverDoes) {
  const auto agreed = [](const std::vector<int64_t>& asked) {
    std::vector<MemberReport> reports;
    for (const int64_t every : asked) {
      reports.push_back(At(7));
      reports.back().recheck_every = every;
    }
    return PlanReform(reports)->recheck_every;
  };
  EXPECT_EQ(agreed({MemberReport::kUsual, MemberReport::kUsual}), MemberReport::kUsual);
  EXPECT_EQ(agreed({7, MemberReport::kUsual, 3}), 7);
  EXPECT_EQ(agreed({MemberReport::kUsual, 7, 0}), 0);
}

TEST(Reform, AStepThatOneDoubtsIsDoubtedByAllAndNobodyCatchesUpMeanwhile) {
  std::vector<MemberReport> reports;
  for (const int64_t step : {7, 7, 3}) {
    reports.push_back(At(step));
    reports.back().by_parts = true;
    reports.back().compared = true;
  }
  EXPECT_EQ(PlanReform(reports)->doubts, 0);
  EXPECT_TRUE(PlanReform(reports)->catches_up());
  reports[2].doubts = 3;   // it is behind: that was another step
  EXPECT_EQ(PlanReform(reports)->doubts, 0);
  reports[1].doubts = 2;
  EXPECT_EQ(PlanReform(reports)->doubts, 2);
  EXPECT_FALSE(PlanReform(reports)->catches_up());
}

TEST(Reform, AJobBeginsWithWhatItsProgramsBuilt) {
  const auto plan = PlanReform({At(-1), At(-1)});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->step, 0);
  EXPECT_THAT(plan->parts, ElementsAre(Part::kReady, Part::kReady));
}

// A model is computed from the seed, too, and other kernels may come to other bits.
TEST(Reform, WhereKernelsDifferAllBeginWithWhatOneBuilt) {
  MemberReport ours = At(-1), theirs = At(-1);
  ours.fingerprint = "cpu=AVX2";
  theirs.fingerprint = "cpu=DEFAULT";
  const auto plan = PlanReform({ours, theirs, theirs});
  EXPECT_THAT(plan->parts, ElementsAre(Part::kReady, Part::kReceives, Part::kReceives));
  EXPECT_THAT(PlanReform({ours, ours})->parts, ElementsAre(Part::kReady, Part::kReady));
  // What somebody has trained is not given up for that.
  ours.step = theirs.step = 5;
  EXPECT_THAT(PlanReform({ours, theirs})->parts, ElementsAre(Part::kReady, Part::kReady));
}

TEST(Reform, ANewcomerReceivesFromThoseWhoAreFurthest) {
  const auto plan = PlanReform({At(-1), At(5), At(5)});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->step, 5);
  EXPECT_EQ(plan->source, 1);
  EXPECT_THAT(plan->parts, ElementsAre(Part::kReceives, Part::kReady, Part::kReady));
}

TEST(Reform, OfFewWhoLackALargeStateEachCatchesUpBesideTheOthers) {
  const auto large = [](int64_t step, bool compared = true) {
    MemberReport report = At(step);
    report.by_parts = true;
    report.compared = step > 0 && compared;
    return report;
  };
  const auto plan = PlanReform({large(5), large(-1), large(5)});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->parts, ElementsAre(Part::kReady, Part::kCatchesUp, Part::kReady));
  EXPECT_TRUE(plan->proved) << "that the others are the same";
  EXPECT_THAT(plan->reason, HasSubstr("0 receive the state, 1 catch up"));
  EXPECT_TRUE(PlanReform({large(5), large(-1)})->catches_up());
  EXPECT_TRUE(PlanReform({large(5), large(3), large(MemberReport::kSpoiled), large(5)})
                  ->catches_up());
  // Most would compute nothing, one cannot, bits may differ, or nobody trains yet.
  EXPECT_FALSE(PlanReform({large(5), large(-1), large(-1)})->catches_up());
  EXPECT_FALSE(PlanReform({large(5), At(-1)})->catches_up());
  MemberReport other = large(-1);
  other.fingerprint = "threads=2";
  EXPECT_FALSE(PlanReform({large(5), other})->catches_up());
  EXPECT_FALSE(PlanReform({large(5, false), large(-1)})->catches_up());
  EXPECT_FALSE(PlanReform({large(0), large(-1)})->catches_up());
}

// All look at the step that comes then, since lanes are compared by all or by nobody.
TEST(Reform, NobodyCatchesUpWhereResultsDifferedThatWereNotJudged) {
  const auto large = [](int64_t step, bool unproven) {
    MemberReport report = At(step);
    report.by_parts = true;
    report.compared = step > 0;
    report.unproven = unproven;
    return report;
  };
  MemberReport doubtful = large(5, true);
  EXPECT_FALSE(PlanReform({doubtful, large(-1, false)})->catches_up());
  EXPECT_TRUE(PlanReform({large(5, false), large(MemberReport::kSpoiled, true)})->catches_up())
      << "it was receiving when the epoch broke";
  doubtful.recheck_every = 0;
  EXPECT_TRUE(PlanReform({doubtful, large(-1, false)})->catches_up()) << "nothing is compared";
}

TEST(Reform, AStepThatOneAppliedIsAppliedByWhoHoldsItsGradients) {
  const auto plan = PlanReform({At(5, true), At(6), At(5, true)});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->step, 6);
  EXPECT_THAT(plan->parts, ElementsAre(Part::kApplies, Part::kReady, Part::kApplies));
}

TEST(Reform, AStepThatNobodyAppliedIsMadeAnew) {
  const auto plan = PlanReform({At(5, true), At(5), At(5, true)});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->step, 5);
  EXPECT_THAT(plan->parts, ElementsAre(Part::kReady, Part::kReady, Part::kReady));
}

TEST(Reform, WhoIsFurtherBehindOrHoldsNoGradientsReceives) {
  const auto plan = PlanReform({At(4, true), At(6), At(5, false), At(0, true)});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->parts,
              ElementsAre(Part::kReceives, Part::kReady, Part::kReceives, Part::kReceives));
}

TEST(Reform, WhatAProgramBeganWithIsBetterThanHalfATransfer) {
  const auto plan = PlanReform({At(MemberReport::kSpoiled), At(-1)});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->step, 0);
  EXPECT_EQ(plan->source, 1);
  EXPECT_THAT(plan->parts, ElementsAre(Part::kReceives, Part::kReady));
  const auto none = PlanReform({At(MemberReport::kSpoiled), At(MemberReport::kSpoiled)});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("no worker that is left has the whole state"));
}

// Whoever received a state, or has other numerics, may hold other bits.
TEST(Reform, StepsMadeTogetherFromOneStateProveTheNext) {
  const auto compared = [](MemberReport report) {
    report.compared = true;
    return report;
  };
  const MemberReport at = compared(At(6)), behind = compared(At(5, true));
  EXPECT_TRUE(PlanReform({at, behind, at})->proved);
  EXPECT_FALSE(PlanReform({at, At(6)})->proved);
  EXPECT_FALSE(PlanReform({at, At(-1)})->proved);
  EXPECT_FALSE(PlanReform({at, compared(At(3, true))})->proved);
  MemberReport other = at;
  other.fingerprint = "cpu=AVX512";
  EXPECT_FALSE(PlanReform({at, other})->proved);
}

// Whoever noted it first: members whose notes differ could never save together again.
TEST(Reform, AllNoteTheSameFirstStepOnOtherNumerics) {
  MemberReport ours = At(9), theirs = At(-1), noted = At(9);
  ours.fingerprint = noted.fingerprint = "cpu=AVX2";
  theirs.fingerprint = "cpu=AVX512";
  noted.inexact_since = 4;
  EXPECT_EQ(PlanReform({ours, ours})->inexact_since, -1);
  EXPECT_EQ(PlanReform({ours, theirs})->inexact_since, 9);
  EXPECT_TRUE(PlanReform({ours, ours})->alike);
  EXPECT_FALSE(PlanReform({ours, ours, theirs})->alike);
  EXPECT_EQ(PlanReform({ours, noted})->inexact_since, 4);
  EXPECT_EQ(PlanReform({ours, theirs, noted})->inexact_since, 4);
}

TEST(Reform, WhoWouldNotDoWhatTheOthersDoTogetherIsApart) {
  MemberReport odd = At(-1), fresh = At(-1), ahead = At(9);
  odd.together = "--checkpoint-dir=none";
  fresh.together = ahead.together = "--checkpoint-dir=given";
  EXPECT_EQ(WhyApart({ahead, fresh}, 1), "");
  EXPECT_THAT(WhyApart({odd, fresh, ahead}, 0),
              HasSubstr("rank 0 was started with other options: --checkpoint-dir is none in rank 0 "
                        "and given in rank 2; "));
  EXPECT_EQ(WhyApart({odd, fresh, ahead}, 1), "");
  EXPECT_NE(WhyApart({odd, fresh, fresh}, 1), "");
}

TEST(Reform, HowAJobBeginsCountsUntilSomebodyHasAState) {
  MemberReport odd = At(-1), fresh = At(-1), ahead = At(9);
  odd.together = fresh.together = ahead.together = "evaluation=none";
  odd.beginning = "--init-from=given";
  fresh.beginning = ahead.beginning = "--init-from=none";
  EXPECT_THAT(WhyApart({fresh, odd}, 1), HasSubstr("--init-from is given in rank 1 and none in "
                                                   "rank 0"));
  EXPECT_EQ(WhyApart({fresh, odd}, 0), "");
  EXPECT_EQ(WhyApart({ahead, odd}, 1), "");
}

TEST(Reform, WhoDiffersFromTheOneWhoseStateCountsIsUnfit) {
  MemberReport odd = At(-1), fresh = At(-1), ahead = At(9);
  odd.fingerprint = "cpu=AVX512 torch=2";
  fresh.fingerprint = ahead.fingerprint = "cpu=AVX2 torch=2";
  EXPECT_EQ(WhyUnfit({ahead, fresh}, 1), "");
  EXPECT_THAT(WhyUnfit({odd, fresh, ahead}, 0),
              HasSubstr("rank 0 has another numerics fingerprint: cpu is AVX512 in rank 0 and AVX2 "
                        "in rank 2; "));
  EXPECT_EQ(WhyUnfit({odd, fresh, ahead}, 1), "");
  // Where all begin, the first one counts.
  EXPECT_NE(WhyUnfit({odd, fresh, fresh}, 1), "");
  EXPECT_EQ(WhyUnfit({odd, fresh, fresh}, 0), "");
}

TEST(Reform, MembersThatDisagreeAreNamed) {
  MemberReport other = At(6);
  other.trail = "elsewhere";
  const auto trails = PlanReform({At(5, true), At(6), other});
  ASSERT_FALSE(trails.ok());
  EXPECT_EQ(trails.error().code, Code::kCorrupt);
  EXPECT_THAT(trails.error().message, HasSubstr("rank 2 and rank 1 disagree"));
  other.layout = "another model";
  const auto layouts = PlanReform({At(6), other, other});
  ASSERT_FALSE(layouts.ok());
  EXPECT_EQ(layouts.error().code, Code::kInvalid);
  EXPECT_THAT(layouts.error().message, HasSubstr("rank 1, rank 2 and rank 0 train different"));
}

}  // namespace
}  // namespace keel
