// The trail sees every bit of every step. The golden digests come from a second program.
#include "trainer/state/trail.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace keel {
namespace {

TEST(Trail, GivesTheGoldenDigests) {
  Trail trail;
  EXPECT_EQ(trail.Hex(), std::string(32, '0'));
  trail.Add(0, std::vector<float>{1.5f, -2.25f, 0.1f});
  EXPECT_EQ(trail.Hex(), "790086ebda0019b06c32f50b8655a47a");
  trail.Add(1, std::vector<float>{0.0f, std::numeric_limits<float>::infinity(), 3e-42f});
  EXPECT_EQ(trail.Hex(), "a1be8b812f45286425ed0eba54f00c33");
}

TEST(Trail, SeesOrderStepAndTheSignOfZero) {
  const auto after = [](uint64_t step, std::vector<float> losses) {
    Trail trail;
    trail.Add(step, losses);
    return trail;
  };
  const Trail trail = after(4, {1, 0});
  EXPECT_EQ(trail, after(4, {1, 0}));
  EXPECT_NE(trail, after(5, {1, 0}));
  EXPECT_NE(trail, after(4, {0, 1}));
  EXPECT_NE(trail, after(4, {1, -0.0f}));
  EXPECT_NE(trail, after(4, {1, 0, 0}));
}

TEST(Trail, GoesOnFromASavedOne) {
  const std::vector<float> losses = {1, 2};
  Trail whole;
  whole.Add(0, losses);
  Trail resumed(whole.digest());
  whole.Add(1, losses);
  resumed.Add(1, losses);
  EXPECT_EQ(whole, resumed);
  Trail without;
  without.Add(1, losses);
  EXPECT_NE(whole, without);
}

}  // namespace
}  // namespace keel
