// What a refused worker is told of two fingerprints.
#include "elastic/protocol/differing_words.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(DifferingWords, AreThoseThatTheOtherLacksInTheirOrder) {
  EXPECT_EQ(DifferingWords("torch=2 cpu=avx2 threads=2", "torch=2 cpu=avx512 threads=1"),
            "cpu=avx2 threads=2");
  EXPECT_EQ(DifferingWords("a=1 b=2", "b=2 a=1"), "");
  EXPECT_EQ(DifferingWords("a=1 b=2", ""), "a=1 b=2");
  EXPECT_EQ(DifferingWords("", "a=1"), "");
}

}  // namespace
}  // namespace keel
