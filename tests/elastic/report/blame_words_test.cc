// What speaks for and against a host, in words and in JSON.
#include "elastic/report/blame_words.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "elastic/protocol/records.h"

namespace keel {
namespace {

TEST(BlameWords, WhereNothingHappenedNothingIsSaid) {
  EXPECT_EQ(BlameText({}, ""), "");
  EXPECT_EQ(BlameText({}, kHealthGood), "");
  HostBlame checked;
  checked.checks.rechecks = 100;
  EXPECT_EQ(BlameText(checked, ""), "");
  EXPECT_EQ(DeathsText({}), "none");
}

TEST(BlameWords, EachCauseIsTold) {
  const HostBlame all{1, 2, 3, 4, 5, {60, 7, 80}};
  EXPECT_EQ(DeathsText(all),
            "1 exited with a code, 2 killed by a signal, 3 ended by the launcher, 4 lost their "
            "GPU, 5 not started");
  EXPECT_EQ(BlameText(all, "the GPU is lost"),
            "  this host: workers that died: " + DeathsText(all) +
                "; 7 of 60 comparisons came out differently; 80 steps much slower than those "
                "of most; not fit\n");
  const Json json = BlameJson(all);
  EXPECT_EQ(json["deaths"]["ended"], 3);
  EXPECT_EQ(json["deaths"].size(), 5u);
  EXPECT_EQ(json["differences"], 7);
}

TEST(BlameWords, DeathsAreCountedOverAllCauses) {
  EXPECT_EQ(DeathCount({}), 0);
  EXPECT_EQ(DeathCount({1, 2, 3, 4, 5, {60, 7, 80}}), 15);
}

}  // namespace
}  // namespace keel
