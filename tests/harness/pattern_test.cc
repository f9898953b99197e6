// What a Pattern matches.
#include "tests/harness/pattern.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(Pattern, TextMatchesAnywhereAndLiterally) {
  const Pattern pattern("step 1.");
  EXPECT_TRUE(pattern.Matches("at step 1. done"));
  EXPECT_FALSE(pattern.Matches("at step 12 done"));
  EXPECT_EQ(pattern.Text(), "\"step 1.\"");
}

TEST(Pattern, AnExpressionMatchesAsGrepDoesAlsoInALongLine) {
  const Pattern pattern = Pattern::Regex("step [0-9]+$");
  EXPECT_TRUE(pattern.Matches(std::string(1000000, 'x') + " step 12"));
  EXPECT_FALSE(pattern.Matches("step 12 done"));
  EXPECT_EQ(pattern.Text(), "/step [0-9]+$/");
}

}  // namespace
}  // namespace keel
