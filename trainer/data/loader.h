// BatchLoader: the samples of this worker's lanes, loaded ahead if the dataset allows it.
// Promises   the very batches that the dataset would give if it were asked in the step: loading
//            ahead, how far and by how many threads, changes no bit. They come on the device that
//            is asked for; on CUDA from pinned memory, by a copy that nobody waits for.
// Does not   load ahead from a dataset that draws from LibTorch's default generators (Loading::
//            kInStep): these have the lane's seed only within its step.
// Threads    Take() by one at a time; the dataset is called from the loader's threads.
// Errors     those of the dataset, with the indices, when their lane is taken.
// Lifetime   keeps the dataset and the order by reference.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "base/result.h"
#include "trainer/data/load_ahead.h"
#include "trainer/data/samples.h"
#include "trainer/dataset.h"
#include "trainer/train_config.h"

namespace keel {

// A batch of what `change` makes of each tensor.
Batch Changed(const Batch& batch, const std::function<at::Tensor(const at::Tensor&)>& change);

class BatchLoader {
 public:
  struct Spec {
    LoaderConfig config = {};
    uint64_t steps = 0;      // of the job: nothing is loaded beyond them
    uint64_t seed = 0;       // of the job
    c10::Device device = c10::kCPU;
  };
  BatchLoader(Dataset& dataset, const SampleOrder& order, const Spec& spec);

  // `lanes`: all that this worker computes, in the order in which it asks.
  Result<Batch> Take(const LoadRequest& request, const LaneRange& lanes);
  // Of a lane that another worker computes. What is loaded ahead stays.
  Result<Batch> TakeAnother(const LoadRequest& request);

 private:
  Result<Batch> Load(const LoadRequest& request);
  Result<Batch> OnDevice(const Result<Batch>& batch) const;

  Dataset& dataset_;
  const SampleOrder& order_;
  const Spec spec_;
  std::unique_ptr<LoadAhead<Batch>> ahead_;   // null: each batch is loaded in its step
};

}  // namespace keel
