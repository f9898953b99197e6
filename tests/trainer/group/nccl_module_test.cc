// The NCCL module loads, and says what it found, whether there is a GPU or not.
#include "trainer/nccl_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "trainer/numerics/profile_range.h"
#include "trainer/process_group.h"
#include "trainer/state/device.h"

namespace keel {
namespace {

TEST(NcclModule, LoadsAndDescribesWhatItFound) {
  const Result<NcclModule*> module = OpenNcclModule();
  ASSERT_TRUE(module.ok()) << module.error().message;
  const std::string description = (*module)->Description();
  EXPECT_THAT(description, testing::HasSubstr("NCCL 2."));
  if ((*module)->DeviceCount() == 0) {
    EXPECT_THAT(description, testing::StartsWith("no GPU: "));
  } else {
    EXPECT_THAT(description, testing::HasSubstr(" GPU"));
  }
}

TEST(NcclModule, AGpuThatIsNotThereIsRefusedInWords) {
  const Result<Group> group = MakeNcclGroup({.store = nullptr, .prefix = "g"}, 99);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.error().code, Code::kNoDevice);
  EXPECT_THAT(group.error().message, testing::HasSubstr("GPU 99 is not there"));
}

TEST(NcclModule, ADeviceThatIsNotThereIsRefusedInWords) {
  const Status opened = OpenDevice(c10::Device(c10::kCUDA, 99));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kNoDevice);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("cuda:99 is not there: "));
}

TEST(NcclModule, BringsTheProfilersRanges) {
  ASSERT_TRUE(OpenNcclModule().ok());
  EXPECT_TRUE(torch::profiler::impl::cudaStubs()->enabled());
  const ProfileRange range(c10::Device(c10::kCUDA, 0), "needs no GPU");
}

}  // namespace
}  // namespace keel
