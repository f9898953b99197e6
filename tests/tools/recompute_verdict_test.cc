// RecomputeVerdict: who is right, by what this machine has come to.
#include "tools/keel/recompute_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RecomputeVerdict, WhoseResultsAreAllTheSameIsRight) {
  const auto verdict = JudgeClaims({{"a", "owner", false, ""},
                                    {"b", "checker", false, "the loss"},
                                    {"a", "owner", true, ""},
                                    {"b", "checker", true, ""},
                                    {"c", "witness", true, ""}});
  EXPECT_THAT(verdict.right, ElementsAre("a", "c"));
  EXPECT_THAT(verdict.wrong, ElementsAre("b"));
  EXPECT_EQ(verdict.sentence, "This machine comes to the results of a, c. Wrong: b.");
}

TEST(RecomputeVerdict, WhereAllDifferThisMachineIsInDoubt) {
  const auto verdict =
      JudgeClaims({{"a", "owner", false, "the loss"}, {"b", "checker", false, "the loss"}});
  EXPECT_THAT(verdict.right, IsEmpty());
  EXPECT_TRUE(verdict.is_alone);
  EXPECT_THAT(verdict.sentence, HasSubstr("another result than everybody"));
}

TEST(RecomputeVerdict, WhereNeitherRepeatsItselfThisMachineIsInNoDoubt) {
  const auto verdict = JudgeClaims({{"a", "owner", false, ""},
                                    {"b", "checker", false, "the loss"},
                                    {"a", "owner", true, "the buffers"},
                                    {"b", "checker", true, ""}});
  EXPECT_THAT(verdict.right, IsEmpty());
  EXPECT_FALSE(verdict.is_alone);
  EXPECT_EQ(verdict.sentence,
            "This machine comes to a result that a, b came to, too, beside another one. At least "
            "once wrong: b, a, or the program comes to another result each time.");
}

TEST(RecomputeVerdict, WhoeverIsAloneMayDifferFromItself) {
  const auto verdict =
      JudgeClaims({{"a", "owner", false, ""}, {"a", "checker", false, "the buffers"}});
  EXPECT_THAT(verdict.right, IsEmpty());
  EXPECT_THAT(verdict.wrong, ElementsAre("a"));
  EXPECT_FALSE(verdict.is_alone);
}

TEST(RecomputeVerdict, AnAnswerThatMakesNoSenseIsRefused) {
  const std::string start = R"({"step":4,"lane":2,"verdict":"b")";
  for (const char* const rest : {"}", R"(,"claims":[]})", R"(,"claims":[{"member":1}]})",
                                 R"(,"claims":[{"member":"a","role":"owner","second":false}]})"}) {
    EXPECT_FALSE(RecomputedIn(*ParseJson(start + rest)).ok()) << rest;
  }
  const auto whole = RecomputedIn(RecomputedJson({4, 2, "b", {{"a", "owner", true, "the loss"}}}));
  ASSERT_OK(whole);
  EXPECT_EQ(whole->step, 4u);
  EXPECT_EQ(whole->claims[0].differs, "the loss");
}

}  // namespace
}  // namespace keel
