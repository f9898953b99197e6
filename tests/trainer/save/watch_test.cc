// When a save is told as late: by what saves took before, and by what is spread on purpose;
// and how long a silent disk is waited for.
#include "trainer/save/watch.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kBegin{1000s};

TEST(SaveWatch, IsSilentWhereNothingHasBegun) {
  SaveWatch watch;
  EXPECT_FALSE(watch.Look(kBegin));
}

TEST(SaveWatch, TellsOfALateOneAndAgainWhenItTookTwiceAsLong) {
  SaveWatch watch;
  watch.OnBegin(kBegin, 0s, std::nullopt);
  EXPECT_FALSE(watch.Look(kBegin + 9s));
  EXPECT_EQ(watch.Look(kBegin + 11s), Duration(11s));
  EXPECT_FALSE(watch.Look(kBegin + 21s));
  EXPECT_EQ(watch.Look(kBegin + 22s), Duration(22s));
  EXPECT_FALSE(watch.Look(kBegin + 43s));
  EXPECT_EQ(watch.Look(kBegin + 60s), Duration(60s));
}

TEST(SaveWatch, KnowsWhatSavesTakeAndWhatIsSpreadOnPurpose) {
  SaveWatch watch;
  watch.OnBegin(kBegin, 10s, 30s);
  EXPECT_FALSE(watch.Look(kBegin + 129s));
  EXPECT_EQ(watch.Look(kBegin + 130s), Duration(130s));
  watch.OnBegin(kBegin + 200s, 10s, 1s);
  EXPECT_FALSE(watch.Look(kBegin + 219s));
  EXPECT_TRUE(watch.Look(kBegin + 220s));
}

TEST(DiskPatience, BeginsAnewWithEachByteAndEnds) {
  DiskPatience patience(kBegin);
  EXPECT_TRUE(patience.IsLeft(kBegin + 299s, 0));
  EXPECT_FALSE(patience.IsLeft(kBegin + 300s, 0));
  EXPECT_TRUE(patience.IsLeft(kBegin + 400s, 1));
  EXPECT_TRUE(patience.IsLeft(kBegin + 699s, 1));
  EXPECT_FALSE(patience.IsLeft(kBegin + 700s, 1));
}

}  // namespace
}  // namespace keel
