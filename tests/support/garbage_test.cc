// What Garbage promises: the same from the same seed, within its limits, and reaching them.
#include "tests/support/garbage.h"

#include <gtest/gtest.h>

#include <set>

namespace keel {
namespace {

TEST(Garbage, IsTheSameFromTheSameSeed) {
  Garbage first(7), again(7), other(8);
  const std::string bytes = first.Bytes(1000);
  EXPECT_EQ(bytes, again.Bytes(1000));
  EXPECT_NE(bytes, other.Bytes(1000));
}

TEST(Garbage, HasEachSizeUpToTheLimitAndEachByte) {
  Garbage garbage(20261121);
  std::set<size_t> sizes;
  std::set<char> bytes;
  for (int round = 0; round < 2000; ++round) {
    const std::string some = garbage.Bytes(4);
    sizes.insert(some.size());
    bytes.insert(some.begin(), some.end());
  }
  EXPECT_EQ(sizes, (std::set<size_t>{0, 1, 2, 3, 4})) << garbage.Where(2000);
  EXPECT_EQ(bytes.size(), 256u) << garbage.Where(2000);
}

TEST(Garbage, NamesItsSeedAndTheRound) {
  EXPECT_EQ(Garbage(7).Where(3), "seed 7, round 3");
}

}  // namespace
}  // namespace keel
