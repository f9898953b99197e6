// Random's numbers are the same for ever; the golden ones were computed by a second program, which
// agrees with the published vectors of splitmix64 and xoshiro256++.
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace keel {
namespace {

TEST(Random, GivesTheGoldenNumbers) {
  Random zero(0);
  EXPECT_EQ(zero.Next(), 0x53175d61490b23dfu);
  EXPECT_EQ(zero.Next(), 0x61da6f3dc380d507u);
  Random forty_two(42);
  for (const uint64_t golden :
       {0xd0764d4f4476689fu, 0x519e4174576f3791u, 0xfbe07cfb0c24ed8cu, 0xb37d9f600cd835b8u}) {
    EXPECT_EQ(forty_two.Next(), golden);
  }
  EXPECT_EQ(Random(UINT64_MAX).Next(), 0x56ccf8ce948e27b2u);
}

TEST(Random, DerivedDrawsAreGoldenToo) {
  Random uniform(42);
  for (const uint64_t golden : {1, 3, 0, 4, 1, 5, 8, 0, 5, 8, 4, 9}) {
    EXPECT_EQ(uniform.Uniform(10), golden);
  }
  Random fractions(42);
  EXPECT_EQ(fractions.Double(), 0.8143051451229099);
  EXPECT_EQ(fractions.Double(), 0.3188210400616611);
  Random letters(42);
  EXPECT_EQ(RandomId(letters, 12), "f1c83d66742d");
  Random cards(7);
  std::vector<int> deck{0, 1, 2, 3, 4, 5, 6, 7};
  cards.Shuffle(std::span(deck));
  EXPECT_EQ(deck, (std::vector<int>{4, 3, 0, 7, 1, 2, 6, 5}));
}

TEST(Random, BytesAreGoldenAndMayEndWithinAWord) {
  Random random(42);
  std::array<std::byte, 11> bytes{};
  random.Bytes(bytes);
  constexpr std::array<int, 11> kGolden{0x9f, 0x68, 0x76, 0x44, 0x4f, 0x4d,
                                        0x76, 0xd0, 0x91, 0x37, 0x6f};
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(bytes[i]), kGolden[i]) << i;
  }
}

TEST(Random, ForkDependsOnSeedAndNameOnly) {
  Random random(42);
  EXPECT_EQ(random.Fork("backoff").Next(), 0xfd22b706ba8b7553u);
  random.Next();
  EXPECT_EQ(random.Fork("backoff").Next(), 0xfd22b706ba8b7553u);
  EXPECT_NE(random.Fork("backofg").Next(), random.Fork("backoff").Next());
  EXPECT_NE(Random(43).Fork("backoff").Next(), random.Fork("backoff").Next());
  EXPECT_NE(random.Fork("a").Fork("b").Next(), random.Fork("b").Fork("a").Next());
}

// 5 does not divide 2^64, and neither does 3 * 2^62, where a careless draw favours the low third.
TEST(Random, UniformHitsEachNumberEquallyOften) {
  Random random(1);
  std::array<int, 5> hits{};
  for (int i = 0; i < 50000; ++i) ++hits[random.Uniform(5)];
  for (const int count : hits) EXPECT_NEAR(count, 10000, 500);
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += random.Uniform(3ull << 62) < (1ull << 62) ? 1 : 0;
  EXPECT_NEAR(low, 10000, 500);
  EXPECT_EQ(random.Uniform(1), 0u);
}

TEST(Random, ChanceFollowsItsProbability) {
  Random random(2);
  int hits = 0;
  for (int i = 0; i < 20000; ++i) {
    hits += random.Chance(0.25) ? 1 : 0;
    EXPECT_FALSE(random.Chance(0.0));
    EXPECT_TRUE(random.Chance(1.0));
  }
  EXPECT_NEAR(hits, 5000, 300);
}

TEST(Random, ShuffleReachesEveryOrder) {
  Random random(3);
  std::set<std::vector<int>> orders;
  for (int i = 0; i < 500; ++i) {
    std::vector<int> items{1, 2, 3, 4};
    random.Shuffle(std::span(items));
    orders.insert(items);
  }
  EXPECT_EQ(orders.size(), 24u);
}

TEST(EntropySeed, IsNewEachTime) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 8; ++i) seeds.insert(EntropySeed());
  EXPECT_EQ(seeds.size(), 8u);
}

TEST(RandomDeathTest, UniformOfNothingIsABug) {
  Random random(1);
  EXPECT_DEATH((void)random.Uniform(0), "Uniform\\(0\\)");
}

}  // namespace
}  // namespace keel
