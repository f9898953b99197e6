// The order of an epoch of data: a permutation, the same for ever, unlike that of other epochs. The
// golden numbers come from a second program.
#include "trainer/data/permutation.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "trainer/numerics/mix.h"

namespace keel {
namespace {

std::vector<uint64_t> All(const Permutation& order) {
  std::vector<uint64_t> all;
  for (uint64_t place = 0; place < order.size(); ++place) all.push_back(order(place));
  return all;
}

TEST(Mix, GivesTheGoldenNumbers) {
  const uint64_t words[] = {1, 2};
  EXPECT_EQ(Mix(words), 0x556c70b5fae5b2a4u);
  EXPECT_EQ(LaneSeed(42, 3, 5), 0xa156730966724a24u);
  EXPECT_EQ(DataSeed(42, 3, 5), 0x9921f5a9d29a8cfdu);
}

TEST(Mix, NeighbouringStepsAndLanesShareNoSeedAndHalfOfTheBits) {
  int differing = 0;
  for (uint64_t step = 0; step < 64; ++step) {
    for (uint64_t lane = 0; lane < 16; ++lane) {
      const uint64_t seed = LaneSeed(1, step, lane);
      EXPECT_NE(seed, LaneSeed(1, lane, step + 100));
      differing += std::popcount(seed ^ LaneSeed(1, step + 1, lane));
      differing += std::popcount(seed ^ LaneSeed(1, step, lane + 1));
    }
  }
  // 2048 pairs of 64 bits, each differing with chance 1/2: mean 65536, deviation 181.
  EXPECT_NEAR(differing, 65536, 6 * 181);
}

TEST(Permutation, GivesTheGoldenOrders) {
  const auto order = [](uint64_t seed, uint64_t data_epoch, uint64_t size) {
    return Permutation({.seed = seed, .data_epoch = data_epoch, .size = size});
  };
  EXPECT_EQ(All(order(42, 0, 10)), (std::vector<uint64_t>{5, 4, 7, 3, 8, 0, 1, 9, 6, 2}));
  EXPECT_EQ(All(order(42, 1, 10)), (std::vector<uint64_t>{8, 2, 0, 7, 9, 5, 4, 1, 6, 3}));
  const Permutation million = order(7, 3, 1000003);
  EXPECT_EQ(million(0), 150418u);
  EXPECT_EQ(million(1), 960215u);
  EXPECT_EQ(million(1000002), 347878u);
  const Permutation largest = order(UINT64_MAX, 0, uint64_t{1} << 62);
  EXPECT_EQ(largest(0), 1676093327654284016u);
  EXPECT_EQ(largest((uint64_t{1} << 62) - 1), 2536484284100475241u);
}

TEST(Permutation, TakesEverySampleOnceForEverySize) {
  for (uint64_t size = 1; size <= 300; ++size) {
    std::vector<int> taken(size, 0);
    for (const uint64_t index : All(Permutation({.seed = 9, .data_epoch = size, .size = size}))) {
      ASSERT_LT(index, size);
      ++taken[index];
    }
    EXPECT_EQ(taken, std::vector<int>(size, 1)) << size;
  }
}

TEST(Permutation, EverySampleComesAtEveryPlaceEquallyOften) {
  constexpr uint64_t kSize = 7;
  constexpr int kEpochs = 7000;
  std::vector<int> count(kSize * kSize, 0);
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation order({.seed = 3, .data_epoch = epoch, .size = kSize});
    for (uint64_t place = 0; place < kSize; ++place) ++count[place * kSize + order(place)];
  }
  double chi_squared = 0;
  for (const int seen : count) chi_squared += (seen - 1000.0) * (seen - 1000.0) / 1000.0;
  // 36 degrees of freedom: mean 36, deviation 8.5.
  EXPECT_LT(chi_squared, 36 + 5 * 8.5);
}

TEST(Permutation, NeighboursDoNotStayNeighbours) {
  const Permutation order({.seed = 5, .data_epoch = 0, .size = 10000});
  int followed = 0;
  for (uint64_t place = 1; place < order.size(); ++place) {
    if (order(place) == order(place - 1) + 1) ++followed;
  }
  EXPECT_LE(followed, 10);  // one is expected by chance
}

}  // namespace
}  // namespace keel
