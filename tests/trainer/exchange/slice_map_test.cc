// SliceMap: every element once, in shares that differ by a block.
#include "trainer/exchange/slice_map.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace keel {
namespace {

TEST(SliceMap, CoversAllInEqualSharesOfWholeBlocks) {
  for (const int64_t elements : {0, 1, 63, 64, 65, 1000, 4096, 1'200'011}) {
    for (int world = 1; world <= 9; ++world) {
      SCOPED_TRACE(testing::Message() << elements << " elements, " << world << " workers");
      const SliceMap map(elements, world);
      int64_t covered = 0;
      int64_t least = elements;
      int64_t most = 0;
      for (int rank = 0; rank < world; ++rank) {
        const Slice slice = map.Of(rank);
        EXPECT_EQ(slice.begin, covered);
        EXPECT_TRUE(slice.begin % SliceMap::kBlock == 0 || slice.count == 0);
        covered += slice.count;
        least = std::min(least, slice.count);
        most = std::max(most, slice.count);
      }
      EXPECT_EQ(covered, elements);
      EXPECT_LT(most - least, 2 * SliceMap::kBlock);
    }
  }
}

TEST(SliceMap, ChunksAreTheSliceInOrder) {
  const SliceMap map(10'000, 3);
  for (int rank = 0; rank < 3; ++rank) {
    const Slice slice = map.Of(rank);
    int64_t at = slice.begin;
    for (const Slice& chunk : map.ChunksOf(rank, 700)) {
      EXPECT_EQ(chunk.begin, at);
      EXPECT_GT(chunk.count, 0);
      EXPECT_LE(chunk.count, 700);
      at += chunk.count;
    }
    EXPECT_EQ(at, slice.begin + slice.count);
  }
  EXPECT_TRUE(SliceMap(0, 2).ChunksOf(1, 700).empty());
}

}  // namespace
}  // namespace keel
