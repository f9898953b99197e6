// Which lane takes which sample: every one once an epoch, whatever the sizes.
#include "trainer/data/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace keel {
namespace {

SampleOrder Order(const SamplePlan& plan) {
  Result<SampleOrder> order = SampleOrder::Make(plan);
  KEEL_CHECK(order.ok(), order.error().message);
  return *order;
}

TEST(SampleOrder, NoSampleIsLostOrSeenTwiceInAnEpoch) {
  for (const uint64_t size : {1, 5, 24, 25, 97, 240}) {
    for (const uint64_t lanes : {1, 3, 8}) {
      for (const uint64_t batch : {1, 4}) {
        const SampleOrder order = Order(
            {.seed = 1, .dataset_size = size, .lanes = lanes, .lane_batch = batch});
        std::map<uint64_t, std::map<uint64_t, int>> taken;  // epoch of data, index
        uint64_t position = 0;
        uint64_t cursor = 0;
        for (; cursor < 3 * size; cursor = order.After(cursor)) {
          for (uint64_t lane = 0; lane < lanes; ++lane) {
            for (const uint64_t index : order.LaneSamples(cursor, lane)) {
              ++taken[position++ / size][index];
            }
          }
        }
        for (uint64_t epoch = 0; epoch < 3; ++epoch) {
          ASSERT_EQ(taken[epoch].size(), size) << size << " " << lanes << " " << batch;
          for (const auto& [index, times] : taken[epoch]) EXPECT_EQ(times, 1) << index;
        }
      }
    }
  }
}

TEST(SampleOrder, ALaneTakesWhatLiesAtItsPositionsAcrossTheEndOfAnEpoch) {
  const SampleOrder order =
      Order({.seed = 4, .dataset_size = 10, .lanes = 3, .lane_batch = 2});
  const std::vector<uint64_t> lane = order.LaneSamples(6, 1);  // positions 8, 9
  EXPECT_EQ(lane, (std::vector<uint64_t>{order.At(8).index, order.At(9).index}));
  const std::vector<uint64_t> across = order.LaneSamples(5, 2);  // positions 9, 10
  EXPECT_EQ(across, (std::vector<uint64_t>{order.At(9).index, order.At(10).index}));
  EXPECT_EQ(order.At(9).data_epoch, 0u);
  EXPECT_EQ(order.At(10).data_epoch, 1u);
}

TEST(SampleOrder, ABatchLargerThanTheDatasetRunsThroughSeveralEpochs) {
  const SampleOrder order = Order({.seed = 4, .dataset_size = 3, .lanes = 1, .lane_batch = 9});
  std::map<uint64_t, int> times;
  for (const uint64_t index : order.LaneSamples(0, 0)) ++times[index];
  EXPECT_EQ(times, (std::map<uint64_t, int>{{0, 3}, {1, 3}, {2, 3}}));
}

TEST(SampleOrder, RefusesWhatCannotBeInWords) {
  const auto why = [](const SamplePlan& plan) {
    const Result<SampleOrder> order = SampleOrder::Make(plan);
    EXPECT_FALSE(order.ok());
    return order.ok() ? "" : order.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(why({.dataset_size = 0, .lanes = 1, .lane_batch = 1}), HasSubstr("no samples"));
  EXPECT_THAT(why({.dataset_size = 9, .lanes = 0, .lane_batch = 1}), HasSubstr("lanes is 0"));
  EXPECT_THAT(why({.dataset_size = 9, .lanes = 1, .lane_batch = 0}),
              HasSubstr("batch of a lane is 0"));
  EXPECT_THAT(why({.dataset_size = UINT64_MAX, .lanes = 1, .lane_batch = 1}),
              HasSubstr("18446744073709551615 samples"));
  EXPECT_THAT(why({.dataset_size = 9, .lanes = uint64_t{1} << 40, .lane_batch = 1 << 30}),
              HasSubstr("more than a step can take"));
}

}  // namespace
}  // namespace keel
