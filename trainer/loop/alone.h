// SpecAlone: the group of a worker that has no others.
// Threads    any.
#pragma once

#include <optional>

#include "trainer/group/epoch_group.h"
#include "trainer/train_config.h"

namespace keel {

// Where its tensors are exchanged over NCCL.
std::optional<int> GpuOf(const TrainConfig& config);

// With a store of its own, and a prefix that no other group has.
EpochGroup::Spec SpecAlone(const TrainConfig& config);

}  // namespace keel
