// Learning rates: their shapes, and the words for what is no schedule.
#include "trainer/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace keel {
namespace {

Schedule Parsed(std::string_view text) {
  Result<Schedule> schedule = Schedule::Parse(text);
  KEEL_CHECK(schedule.ok(), schedule.error().message);
  return *schedule;
}

TEST(Schedule, ConstantStaysAndWarmUpRisesToTheFullRate) {
  EXPECT_EQ(Schedule().Factor(0), 1);
  EXPECT_EQ(Parsed("constant").Factor(12345), 1);
  const Schedule warm = Parsed("constant:warmup=4");
  EXPECT_EQ(warm.Factor(0), 0.25);
  EXPECT_EQ(warm.Factor(3), 1);
  EXPECT_EQ(warm.Factor(4), 1);
}

TEST(Schedule, CosineFollowsTheCosineToItsMinimumAndStaysThere) {
  const Schedule schedule = Parsed("cosine:warmup=100,total=1000,min=0.1");
  for (uint64_t step = 100; step < 1000; ++step) {
    const double t = static_cast<double>(step - 100) / 900;
    EXPECT_NEAR(schedule.Factor(step), 0.1 + 0.9 * (1 + std::cos(M_PI * t)) / 2, 1e-15) << step;
  }
  EXPECT_EQ(schedule.Factor(100), 1);
  EXPECT_EQ(schedule.Factor(1000), 0.1);
  EXPECT_EQ(schedule.Factor(UINT64_MAX), 0.1);
}

TEST(Schedule, CosineNeverRisesOrLeavesItsRange) {
  const Schedule schedule = Parsed("cosine:total=5000");
  for (uint64_t step = 1; step < 5001; ++step) {
    EXPECT_LE(schedule.Factor(step), schedule.Factor(step - 1)) << step;
    EXPECT_GE(schedule.Factor(step), 0) << step;
  }
}

// Whole-number arithmetic: these bits are the same on every host, for ever.
TEST(Schedule, CosineGivesTheGoldenBits) {
  const Schedule schedule = Parsed("cosine:total=1000");
  EXPECT_EQ(schedule.Factor(1), 0x1.ffffad35340ffp-1);
  EXPECT_EQ(schedule.Factor(333), 0x1.803b6aa646232p-1);
  EXPECT_EQ(schedule.Factor(999), 0x1.4b2b2fc02d800p-19);
}

TEST(Schedule, LinearFallsStraight) {
  const Schedule schedule = Parsed("linear:warmup=2,total=10,min=0.5");
  EXPECT_EQ(schedule.Factor(0), 0.5);
  EXPECT_EQ(schedule.Factor(1), 1);
  EXPECT_EQ(schedule.Factor(2), 1);
  EXPECT_EQ(schedule.Factor(6), 0.75);
  EXPECT_EQ(schedule.Factor(10), 0.5);
  EXPECT_EQ(schedule.Factor(11), 0.5);
}

TEST(Schedule, StepFallsInStairs) {
  const Schedule schedule = Parsed("step:every=30,factor=0.5,warmup=10");
  EXPECT_EQ(schedule.Factor(39), 1);
  EXPECT_EQ(schedule.Factor(40), 0.5);
  EXPECT_EQ(schedule.Factor(70), 0.25);
  EXPECT_EQ(schedule.Factor(10 + 30 * 40), std::ldexp(1.0, -40));
}

TEST(Schedule, HugeStepCountsDoNotOverflow) {
  const Schedule schedule = Parsed("linear:total=9223372036854775807");
  EXPECT_NEAR(schedule.Factor(uint64_t{1} << 62), 0.5, 1e-15);
}

TEST(Schedule, TextReadsBackAsTheSame) {
  for (const char* text : {"constant", "constant:warmup=7", "cosine:total=10,min=0",
                           "linear:warmup=3,total=9,min=0.25", "step:every=5,factor=0.1"}) {
    EXPECT_EQ(Parsed(text).Text(), text);
  }
  EXPECT_EQ(Parsed(" cosine : total = 10 ").Text(), "cosine:total=10,min=0");
}

TEST(Schedule, SaysWhatIsWrong) {
  const auto why = [](const char* text) {
    const Result<Schedule> schedule = Schedule::Parse(text);
    EXPECT_FALSE(schedule.ok()) << text;
    return schedule.ok() ? "" : schedule.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(why("cosin:total=9"), HasSubstr("did you mean 'cosine'?"));
  EXPECT_THAT(why(""), HasSubstr("the kinds are constant, cosine, linear, step"));
  EXPECT_THAT(why("cosine"), HasSubstr("total is missing"));
  EXPECT_THAT(why("cosine:total=9,warmup=9"), HasSubstr("warm-up alone takes 9 steps"));
  EXPECT_THAT(why("cosine:total=0"), HasSubstr("at least 1"));
  EXPECT_THAT(why("cosine:total=9,total=8"), HasSubstr("total is given twice"));
  EXPECT_THAT(why("cosine:total=9,every=3"), HasSubstr("it has warmup, total, min"));
  EXPECT_THAT(why("cosine:total=9,min=1.5"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(why("cosine:total"), HasSubstr("name=value"));
  EXPECT_THAT(why("step:every=-3,factor=0.1"), HasSubstr("every is '-3'"));
  EXPECT_THAT(why("step:every=3"), HasSubstr("factor is missing"));
}

}  // namespace
}  // namespace keel
