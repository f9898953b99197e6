// The store is in this process.
#include "trainer/loop/alone.h"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "base/random.h"
#include "trainer/nccl_module.h"

namespace keel {

std::optional<int> GpuOf(const TrainConfig& config) {
  if (TheStandIn() != nullptr) return 0;
  return config.device.is_cuda() ? std::optional<int>(config.device.index()) : std::nullopt;
}

EpochGroup::Spec SpecAlone(const TrainConfig& config) {
  EpochGroup::Spec spec;
  spec.store = c10::make_intrusive<c10d::HashStore>();
  Random random(EntropySeed());
  spec.prefix = "alone-" + RandomId(random, 16);   // attempts to save are named after it
  spec.gpu = GpuOf(config);
  return spec;
}

}  // namespace keel
