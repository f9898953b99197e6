// In how many steps a worker was much slower than most, as the votes tell.
#include "trainer/loop/slow_steps.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

// Twenty steps of two workers with a lane each, of which the second takes so long in some of them.
int64_t SlowOf(int rank, int slow, int64_t lane_ns, int64_t slow_lane_ns) {
  const Placement lanes = EvenPlacement(2, 2);
  SlowSteps steps(rank);
  int64_t counted = 0;
  for (int step = 0; step < 20; ++step) {
    std::vector<VoteRecord> records(2);
    records[0].compute_ns = lane_ns;
    records[1].compute_ns = step < slow ? slow_lane_ns : lane_ns;
    counted += steps.Note(records, lanes);
  }
  return counted;
}

TEST(SlowSteps, AreThoseInWhichItWasSlow) {
  EXPECT_EQ(SlowOf(1, 20, 4'000'000, 9'000'000), 20);
  EXPECT_EQ(SlowOf(1, 12, 4'000'000, 9'000'000), 12);
  EXPECT_EQ(SlowOf(1, 3, 4'000'000, 9'000'000), 0) << "one hiccup or another is everybody's";
  EXPECT_EQ(SlowOf(0, 20, 4'000'000, 9'000'000), 0);
}

TEST(SlowSteps, AreNoneWhereALaneTakesNextToNoTime) {
  EXPECT_EQ(SlowOf(1, 20, 300'000, 600'000), 0);
}

}  // namespace
}  // namespace keel
