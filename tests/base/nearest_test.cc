// Which name is offered for a mistyped one.
#include "base/nearest.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("steps", "steps"), 0u);
  EXPECT_EQ(EditDistance("stpes", "steps"), 1u);
  EXPECT_EQ(EditDistance("step", "steps"), 1u);
  EXPECT_EQ(EditDistance("stops", "steps"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("sitting", "kitten"), 3u);
}

TEST(Nearest, FindsTheMeantName) {
  const std::vector<std::string> names = {"steps", "seed", "max-restarts", "lr"};
  EXPECT_EQ(Nearest("stpes", names), "steps");
  EXPECT_EQ(Nearest("max-restart", names), "max-restarts");
  EXPECT_EQ(Nearest("max-retsrats", names), "max-restarts");
}

TEST(Nearest, OffersNothingWhenNoNameIsNear) {
  EXPECT_EQ(Nearest("banana", {"steps", "seed"}), std::nullopt);
  EXPECT_EQ(Nearest("", {"a"}), std::nullopt);
  EXPECT_EQ(Nearest("x", {"y"}), std::nullopt);
  EXPECT_EQ(Nearest("x", {}), std::nullopt);
  EXPECT_EQ(Nearest(std::string(1 << 20, 'x'), {"x"}), std::nullopt);
}

TEST(Nearest, TakesTheEarlierOfEquals) {
  EXPECT_EQ(Nearest("caz", {"cat", "car"}), "cat");
}

TEST(DidYouMean, IsATailForAMessage) {
  EXPECT_EQ(DidYouMean("stpes", {"steps"}), "; did you mean 'steps'?");
  EXPECT_EQ(DidYouMean("banana", {"steps"}), "");
}

}  // namespace
}  // namespace keel
