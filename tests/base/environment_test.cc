// What the environment value holds.
#include "base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace keel {
namespace {

TEST(Environment, OfThisProcessIsCopied) {
  ASSERT_EQ(setenv("KEEL_TEST_VARIABLE", "a=b", 1), 0);
  const Environment copy = OwnEnvironment();
  ASSERT_EQ(unsetenv("KEEL_TEST_VARIABLE"), 0);
  ASSERT_TRUE(copy.contains("KEEL_TEST_VARIABLE"));
  EXPECT_EQ(copy.at("KEEL_TEST_VARIABLE"), "a=b");
  EXPECT_FALSE(OwnEnvironment().contains("KEEL_TEST_VARIABLE"));
}

TEST(Environment, AVariableThatIsMissingIsEmpty) {
  const Environment some = {{"A", "1"}, {"B", ""}};
  EXPECT_EQ(VariableOf(some, "A"), "1");
  EXPECT_EQ(VariableOf(some, "B"), "");
  EXPECT_EQ(VariableOf(some, "C"), "");
}

TEST(Environment, ChangesAreLaidOver) {
  const Environment result = With({{"A", "1"}, {"B", "2"}}, {{"B", "3"}, {"C", "4"}});
  EXPECT_EQ(result, (Environment{{"A", "1"}, {"B", "3"}, {"C", "4"}}));
}

}  // namespace
}  // namespace keel
