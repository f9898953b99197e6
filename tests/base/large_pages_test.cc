// PreferLargePages: what it marks, and what it leaves alone.
#include "base/large_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "tests/support/large_pages_seen.h"

namespace keel {
namespace {

constexpr size_t kBytes = 5 * kLargePageBytes;

class LargePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory_ = {static_cast<std::byte*>(mapped), kBytes};
    const auto at = reinterpret_cast<uintptr_t>(mapped);
    first_ = (kLargePageBytes - at % kLargePageBytes) % kLargePageBytes;
  }
  void TearDown() override { munmap(memory_.data(), kBytes); }

  std::span<std::byte> memory_;
  size_t first_ = 0;   // where a large page may begin
};

TEST_F(LargePagesTest, OnlyWholePagesOfThePlaceAreMarkedAndNothingChanges) {
  if (!HasLargePages()) GTEST_SKIP() << "this Linux has no large pages";
  memory_[first_ + 7] = std::byte{7};
  // Two of them lie wholly between the one's second byte and the other's.
  PreferLargePages(memory_.subspan(first_ + 1, 3 * kLargePageBytes));
  EXPECT_FALSE(WantsLargePagesAt(&memory_[first_ + 1]));
  EXPECT_TRUE(WantsLargePagesAt(&memory_[first_ + kLargePageBytes]));
  EXPECT_TRUE(WantsLargePagesAt(&memory_[first_ + 3 * kLargePageBytes - 1]));
  EXPECT_FALSE(WantsLargePagesAt(&memory_[first_ + 3 * kLargePageBytes]));
  EXPECT_EQ(memory_[first_ + 7], std::byte{7});
}

TEST_F(LargePagesTest, APlaceWithoutAWholePageIsLeftAlone) {
  PreferLargePages({});
  PreferLargePages(memory_.subspan(first_ + 1, 2 * kLargePageBytes - 2));
  for (size_t at = 0; at < kBytes; at += kLargePageBytes / 2) {
    EXPECT_FALSE(WantsLargePagesAt(&memory_[at])) << at;
  }
}

TEST_F(LargePagesTest, WhatTheSystemRefusesIsLeftAlone) {
  // No memory of anybody.
  PreferLargePages({reinterpret_cast<std::byte*>(kLargePageBytes), kBytes});
}

}  // namespace
}  // namespace keel
