// Buffers of several lanes become one step's.
#include "trainer/state/lane_buffers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

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
  EXPECT_EQ(lanes.elements(), 3 + 3 + 1);
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
