// MemoryWarmer: memory is there afterwards, with what it held before.
#include "base/memory_warmer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace keel {
namespace {

constexpr size_t kBytes = 8 << 20;

class MemoryWarmerTest : public testing::Test {
 protected:
  void SetUp() override {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory_ = {static_cast<std::byte*>(mapped), kBytes};
  }
  void TearDown() override { munmap(memory_.data(), kBytes); }

  size_t PagesThere() const {
    std::vector<unsigned char> there(kBytes / page_);
    EXPECT_EQ(mincore(memory_.data(), kBytes, there.data()), 0);
    return static_cast<size_t>(
        std::count_if(there.begin(), there.end(), [](unsigned char one) { return one & 1; }));
  }
  bool CanPopulate() const { return madvise(memory_.data(), page_, 23) == 0; }

  size_t page_ = 0;
  std::span<std::byte> memory_;
};

TEST_F(MemoryWarmerTest, MemoryIsThereAndUnchanged) {
  if (!CanPopulate()) GTEST_SKIP() << "this Linux cannot populate memory";
  memory_[5] = std::byte{7};
  const size_t before = PagesThere();
  // Neither begins nor ends with a page.
  MemoryWarmer warmer({memory_.subspan(3, kBytes / 2), memory_.subspan(kBytes / 2 + 3, 100), {}});
  warmer.Wait();
  EXPECT_LT(before, kBytes / page_ / 2);   // large pages may bring more than one
  EXPECT_GE(PagesThere(), kBytes / page_ / 2 + 1);
  EXPECT_EQ(memory_[5], std::byte{7});
  EXPECT_EQ(memory_[kBytes / 4], std::byte{0});
}

TEST_F(MemoryWarmerTest, ItMayBeWrittenToMeanwhileAndStopped) {
  MemoryWarmer warmer({memory_});
  std::fill(memory_.begin(), memory_.end(), std::byte{9});
  warmer.Stop();
  warmer.Wait();
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), std::byte{9}), std::ptrdiff_t{kBytes});
}

TEST_F(MemoryWarmerTest, WhatTheSystemRefusesIsLeftAlone) {
  // No memory of anybody.
  MemoryWarmer warmer({{reinterpret_cast<std::byte*>(page_), kBytes}});
  warmer.Wait();
}

}  // namespace
}  // namespace keel
