// Maps positions to samples: the epoch of data, the place in it, and the index at that place.
#include "trainer/data/samples.h"

#include <string>

#include "base/check.h"
#include "trainer/data/permutation.h"

namespace keel {
namespace {

constexpr uint64_t kMostSamples = uint64_t{1} << 62;

Permutation EpochOrder(const SamplePlan& plan, uint64_t data_epoch) {
  return Permutation({.seed = plan.seed, .data_epoch = data_epoch, .size = plan.dataset_size});
}

}  // namespace

Result<SampleOrder> SampleOrder::Make(const SamplePlan& plan) {
  if (plan.dataset_size == 0) return Error{Code::kInvalid, "the dataset has no samples"};
  if (plan.lanes == 0) return Error{Code::kInvalid, "lanes is 0: a step has at least one lane"};
  if (plan.lane_batch == 0) {
    return Error{Code::kInvalid, "the batch of a lane is 0: a lane takes at least one sample"};
  }
  if (plan.dataset_size > kMostSamples) {
    return Error{Code::kInvalid, "the dataset has " + std::to_string(plan.dataset_size) +
                                     " samples, more than " + std::to_string(kMostSamples)};
  }
  if (plan.lanes > kMostSamples / plan.lane_batch) {
    return Error{Code::kInvalid, std::to_string(plan.lanes) + " lanes of " +
                                     std::to_string(plan.lane_batch) +
                                     " samples are more than a step can take"};
  }
  return SampleOrder(plan);
}

SamplePlace SampleOrder::At(uint64_t position) const {
  const uint64_t data_epoch = DataEpoch(position);
  return {data_epoch, EpochOrder(plan_, data_epoch)(position % plan_.dataset_size)};
}

std::vector<uint64_t> SampleOrder::LaneSamples(uint64_t cursor, uint64_t lane) const {
  KEEL_CHECK(lane < plan_.lanes, "lane " << lane << " of " << plan_.lanes);
  const uint64_t begin = cursor + lane * plan_.lane_batch;
  std::vector<uint64_t> indices;
  indices.reserve(plan_.lane_batch);
  uint64_t data_epoch = DataEpoch(begin);
  Permutation order = EpochOrder(plan_, data_epoch);
  for (uint64_t position = begin; position < begin + plan_.lane_batch; ++position) {
    if (DataEpoch(position) != data_epoch) {
      data_epoch = DataEpoch(position);
      order = EpochOrder(plan_, data_epoch);
    }
    indices.push_back(order(position % plan_.dataset_size));
  }
  return indices;
}

}  // namespace keel
