// Which device is meant, and which tensors lie elsewhere; the names of ranges reach the profiler.
// Does not   need a GPU: LibTorch's table of CUDA functions is replaced.
#include "trainer/state/device.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "tests/harness/expect_ok.h"
#include "trainer/numerics/profile_range.h"

namespace keel {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const c10::Device kSecondGpu(c10::kCUDA, 1);

TEST(Device, CudaIsTheGpuOfTheWorkersLocalRank) {
  EXPECT_EQ(*ParseDevice("cpu", {{"LOCAL_RANK", "1"}}), c10::Device(c10::kCPU));
  EXPECT_EQ(*ParseDevice("cuda", {{"LOCAL_RANK", "1"}}), kSecondGpu);
  EXPECT_EQ(*ParseDevice("cuda", {}), c10::Device(c10::kCUDA, 0));
  EXPECT_EQ(*ParseDevice("cuda:1", {{"LOCAL_RANK", "3"}}), kSecondGpu);
}

TEST(Device, WhatIsNoneIsNamed) {
  for (const char* text : {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x", "cuda:128", "cpu:0"}) {
    EXPECT_FALSE(ParseDevice(text, {}).ok()) << text;
  }
  EXPECT_THAT(ParseDevice("tpu", {}).error().message, HasSubstr("tpu"));
  EXPECT_THAT(ParseDevice("cuda", {{"LOCAL_RANK", "x"}}).error().message, HasSubstr("LOCAL_RANK"));
}

TEST(Device, TheCpuIsAlwaysThereAndHasAName) {
  EXPECT_OK(OpenDevice(c10::kCPU));
  EXPECT_EQ(*DeviceName(c10::kCPU), "cpu");
}

TEST(Device, TensorsElsewhereAreNamed) {
  const NamedTensors tensors = {{"near", at::zeros({2})}, {"far", at::empty({2}, at::kMeta)}};
  EXPECT_OK(CheckDevice({tensors[0]}, c10::kCPU));
  const Status mixed = CheckDevice(tensors, c10::kCPU);
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.error().message, AllOf(HasSubstr("far (meta)"), Not(HasSubstr("near"))));
  EXPECT_THAT(CheckDevice(tensors, kSecondGpu).error().message,
              AllOf(HasSubstr("cuda:1"), HasSubstr("near (cpu)"), HasSubstr("far (meta)")));
}

// Notes what it is asked for.
class FakeCuda final : public torch::profiler::impl::ProfilerStubs {
 public:
  using VoidEvent = torch::profiler::impl::ProfilerVoidEventStub;
  void record(c10::DeviceIndex*, VoidEvent*, int64_t*) const override {}
  float elapsed(const VoidEvent*, const VoidEvent*) const override { return 0; }
  void mark(const char*) const override {}
  void rangePush(const char* name) const override { calls.push_back(name); }
  void rangePop() const override { calls.push_back("pop"); }
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}

  mutable std::vector<std::string> calls;
};

class Ranges : public testing::Test {
 protected:
  Ranges() { torch::profiler::impl::registerCUDAMethods(&fake_); }
  ~Ranges() override {
    torch::profiler::impl::registerCUDAMethods(
        const_cast<torch::profiler::impl::ProfilerStubs*>(before_));
  }

  const torch::profiler::impl::ProfilerStubs* const before_ = torch::profiler::impl::cudaStubs();
  FakeCuda fake_;
};

TEST_F(Ranges, EndAsTheyBeganOnCuda) {
  {
    const ProfileRange step(kSecondGpu, "step");
    const ProfileRange vote(kSecondGpu, "vote");
    EXPECT_THAT(fake_.calls, ElementsAre("step", "vote"));
  }
  EXPECT_THAT(fake_.calls, ElementsAre("step", "vote", "pop", "pop"));
}

TEST_F(Ranges, AreNothingOnTheCpu) {
  { const ProfileRange step(c10::kCPU, "step"); }
  EXPECT_THAT(fake_.calls, ElementsAre());
}

}  // namespace
}  // namespace keel
