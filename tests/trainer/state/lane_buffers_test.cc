// Buffers of several lanes become one step's.
#include "trainer/state/lane_buffers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "trainer/tensors.h"

namespace keel {
namespace {

struct Norms {
  torch::nn::BatchNorm1d norm{torch::nn::BatchNorm1dOptions(3)};
  std::vector<at::Tensor> buffers = JustTensors(TensorsOf(*norm).buffers);
};

at::Tensor& Mean(Norms& norms) { return norms.norm->running_mean; }
int64_t Batches(Norms& norms) { return norms.norm->num_batches_tracked.item<int64_t>(); }

TEST(LaneBuffers, AverageFloatsAndAdvanceCountersOnceAStep) {
  Norms norms;
  LaneBuffers lanes(norms.buffers);
  EXPECT_EQ(lanes.elements(), 3 + 3 + 1 + 3);
  for (int64_t step = 1; step <= 2; ++step) {
    lanes.BeginStep();
    const at::Tensor before = Mean(norms).clone();
    at::Tensor sum = at::zeros({lanes.elements()});
    at::Tensor means = at::zeros({3});
    for (int lane = 0; lane < 3; ++lane) {
      lanes.Restore();
      EXPECT_TRUE(at::equal(Mean(norms), before));
      norms.norm->forward(torch::full({8, 3}, static_cast<float>(lane + step)));
      sum += lanes.LaneResult();
      means += Mean(norms);
    }
    lanes.EndStep(sum * (1.0 / 3));
    EXPECT_TRUE(at::allclose(Mean(norms), means / 3));
    EXPECT_GT(Mean(norms)[0].item<float>(), before[0].item<float>());
    EXPECT_EQ(Batches(norms), step);
  }
}

TEST(LaneBuffers, AWorkerWithoutLanesEndsWithTheSame) {
  Norms busy, spare;
  LaneBuffers lanes(busy.buffers), none(spare.buffers);
  busy.norm->forward(torch::arange(12).to(at::kFloat).view({4, 3}));
  const at::Tensor mean = lanes.LaneResult();
  lanes.EndStep(mean);
  none.EndStep(mean);
  for (size_t i = 0; i < busy.buffers.size(); ++i) {
    EXPECT_TRUE(at::equal(busy.buffers[i], spare.buffers[i])) << i;
  }
  EXPECT_EQ(Batches(spare), 1);
}

// Three lanes: x+x+x times a third is not x for every x, and the lowest number overflows.
TEST(LaneBuffers, WhatNoLaneChangesKeepsItsBits) {
  const at::Tensor table = at::rand({100}).add_(0.1);
  const at::Tensor mask = at::full({2, 2}, std::numeric_limits<float>::lowest());
  const at::Tensor odd = at::tensor({std::numeric_limits<float>::quiet_NaN(), -0.0F, 0.3F});
  const at::Tensor angles = at::complex(at::rand({3}), at::rand({3}));
  const at::Tensor running = at::full({1}, 0.3F);
  const std::vector<at::Tensor> constant = {table, mask, odd, angles};
  std::vector<at::Tensor> before;
  for (const at::Tensor& one : constant) before.push_back(one.clone());
  LaneBuffers lanes({table, mask, running, odd, angles});
  at::Tensor sum = at::zeros({lanes.elements()});
  for (int lane = 0; lane < 3; ++lane) {
    lanes.Restore();
    if (lane == 1) running.add_(0.3F);
    sum += lanes.LaneResult();
  }
  lanes.EndStep(sum * (1.0 / 3));
  for (size_t i = 0; i < constant.size(); ++i) {
    EXPECT_TRUE(at::equal(constant[i].view(at::kByte), before[i].view(at::kByte))) << i;
  }
  EXPECT_FLOAT_EQ(running.item<float>(), 0.4F);
}

TEST(LaneBuffers, AComplexBufferThatChangesIsAnError) {
  const at::Tensor angles = at::complex(at::rand({3}), at::rand({3}));
  const LaneBuffers lanes({angles});
  angles.mul_(2);
  EXPECT_THROW(lanes.LaneResult(), std::exception);
}

// Restored for each lane, so that a lane computes the same whichever worker has it, and then told.
TEST(LaneBuffers, ABooleanBufferThatChangesIsAnErrorAndComesBack) {
  const at::Tensor ready = at::zeros({1}, at::kBool);
  const at::Tensor scale = at::ones({1});
  LaneBuffers lanes({ready, scale});
  EXPECT_EQ(lanes.LaneResult().numel(), 2);
  ready.fill_(true);
  EXPECT_THROW(lanes.LaneResult(), std::exception);
  lanes.Restore();
  EXPECT_FALSE(ready.item<bool>());
  EXPECT_EQ(lanes.LaneResult().numel(), 2);
  const LaneBuffers alone({ready});
  ready.fill_(true);
  EXPECT_THROW(alone.LaneResult(), std::exception);
}

TEST(LaneBuffers, ADroppedStepLeavesNoTrace) {
  Norms norms;
  LaneBuffers lanes(norms.buffers);
  norms.norm->forward(torch::ones({4, 3}));
  lanes.Restore();
  EXPECT_EQ(Batches(norms), 0);
  EXPECT_TRUE(at::equal(Mean(norms), at::zeros({3})));
}

TEST(LaneBuffers, TakeWhatATransferBroughtAsTheStepsValues) {
  Norms norms;
  LaneBuffers lanes(norms.buffers);
  norms.norm->running_mean.fill_(5);
  lanes.BeginStep();
  norms.norm->running_mean.fill_(7);
  lanes.Restore();
  EXPECT_EQ(Mean(norms)[1].item<float>(), 5);
}

TEST(LaneBuffers, AModelWithoutBuffersHasNothing) {
  LaneBuffers none({});
  EXPECT_TRUE(none.empty());
  none.BeginStep();
  none.Restore();
  EXPECT_EQ(none.LaneResult().numel(), 0);
  none.EndStep(none.LaneResult());
}

// Of four lanes, those that clear it and those that do not; all of them at last.
TEST(LaneBuffers, WhatLanesTakeFromUnsignedNumbersIsNoLargeNumber) {
  for (const int clear : {1, 3, 4}) {
    const at::Tensor flag = at::ones({2}, at::kByte);
    LaneBuffers lanes({flag});
    at::Tensor sum = at::zeros({lanes.elements()});
    for (int lane = 0; lane < 4; ++lane) {
      lanes.Restore();
      if (lane < clear) flag.zero_();
      sum += lanes.LaneResult();
    }
    lanes.EndStep(sum / 4);
    EXPECT_TRUE(at::equal(flag, at::full({2}, clear == 1 ? 1 : 0, at::kByte))) << flag;
  }
}

TEST(LaneBuffers, WhatTheMeanCannotHoldIsRefused) {
  const at::Tensor counter = at::zeros({}, at::kLong);
  LaneBuffers lanes({counter});
  counter.add_((int64_t{1} << 19) + 1);
  EXPECT_THROW(lanes.LaneResult(), c10::Error);
  const at::Tensor wide = at::zeros({}, at::kDouble);
  LaneBuffers wide_lanes({counter, wide});
  counter.add_((int64_t{1} << 19) + 1);
  wide_lanes.EndStep(wide_lanes.LaneResult());
  EXPECT_EQ(counter.item<int64_t>(), (int64_t{1} << 20) + 2);
}

TEST(LaneBuffers, OfThreeLanesALargeWholeNumberIsTheirMean) {
  const int64_t added = (1 << 19) - 1;
  const at::Tensor counter = at::zeros({}, at::kLong);
  LaneBuffers lanes({counter});
  at::Tensor sum = at::zeros({lanes.elements()});
  for (int lane = 0; lane < 3; ++lane) {
    lanes.Restore();
    counter.add_(added);
    sum += lanes.LaneResult();
  }
  lanes.EndStep(sum * (1.0 / 3));
  EXPECT_EQ(counter.item<int64_t>(), added);
}

// One element of a longer tensor.
TEST(LaneBuffers, AStrideThatSaysNothingDoesNotMatter) {
  const at::Tensor one = at::arange(5.0F).slice(0, 0, 5, 5);
  ASSERT_EQ(one.stride(0), 5);
  LaneBuffers lanes({one});
  one.add_(1);
  lanes.EndStep(lanes.LaneResult());
  EXPECT_EQ(one.item<float>(), 1);
}

TEST(LaneBuffers, CountersStayExactBeyondWhatAFloatHolds) {
  const int64_t large = (int64_t{1} << 40) + 1;
  const at::Tensor counter = at::full({}, large, at::kLong);
  LaneBuffers lanes({counter});
  counter.add_(1);
  lanes.EndStep(lanes.LaneResult());
  EXPECT_EQ(counter.item<int64_t>(), large + 1);
}

}  // namespace
}  // namespace keel
