// SampleOrder: which samples of the dataset each lane of a step takes.
// The job walks along one endless line of positions: the epochs of data one after the other, each
// in the order of its own Permutation. A step takes V*B positions from the cursor on; lane l takes
// the l-th B of them. If the dataset's size is no multiple of V*B, a step simply runs on into the
// next epoch of data.
// Promises   over any run of steps each sample of an epoch is taken once, never twice, whichever
//            worker computes which lane; the order depends on nothing but the plan.
// Does not   hold the cursor: it is the engine's, and part of the state (one number).
// Threads    a plain value: const methods from any thread.
// Errors     kInvalid, naming the value: no samples, no lanes, a batch of 0, sizes that overflow.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace keel {

struct SamplePlan {
  uint64_t seed = 0;
  uint64_t dataset_size = 0;
  uint64_t lanes = 0;       // V
  uint64_t lane_batch = 0;  // B
  bool operator==(const SamplePlan&) const = default;
};

struct SamplePlace {
  uint64_t data_epoch = 0;
  uint64_t index = 0;  // into the dataset
  bool operator==(const SamplePlace&) const = default;
};

class SampleOrder {
 public:
  static Result<SampleOrder> Make(const SamplePlan& plan);

  const SamplePlan& plan() const { return plan_; }
  uint64_t samples_per_step() const { return plan_.lanes * plan_.lane_batch; }

  SamplePlace At(uint64_t position) const;
  // The dataset's indices for one lane of the step that begins at `cursor`.
  std::vector<uint64_t> LaneSamples(uint64_t cursor, uint64_t lane) const;
  // Where the next step begins. A step that was skipped for its numbers has used its samples, too.
  uint64_t After(uint64_t cursor) const { return cursor + samples_per_step(); }
  // The epoch of data in which a position lies.
  uint64_t DataEpoch(uint64_t position) const { return position / plan_.dataset_size; }

 private:
  explicit SampleOrder(const SamplePlan& plan) : plan_(plan) {}

  SamplePlan plan_;
};

}  // namespace keel
