// Evaluation: a metric over a dataset of its own, between two steps, shared by all workers.
// Promises   the value depends on parameters, buffers, dataset and number of lanes alone, to the
//            bit: batches belong to lanes, a lane adds its own in their order, and lanes are added
//            in the order of trainer/numerics/lanes.h. Parameters, buffers, trail, default
//            generators and each module's mode (train or eval) are afterwards what they were
//            before. The model is in eval mode, no gradients are kept, and generators are seeded
//            and buffers put back for each batch.
// Does not   load ahead; repeat an evaluation that was abandoned (evaluate_due.h).
// Threads    one at a time per group; all members call it for the same step.
// Errors     those of the group, which then is broken; kInvalid or kForeign, naming the step and
//            the samples, where the user's dataset or metric failed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/numerics/lanes.h"
#include "trainer/train_program.h"

namespace keel {

class EpochGroup;
class TrainState;

// The batches of `batch` samples that belong to a lane: [begin, end). The last of all may be short.
struct BatchRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const BatchRange&) const = default;
};
BatchRange BatchesOf(uint64_t lane, uint64_t lanes, uint64_t samples, uint64_t batch);

struct EvaluationCallbacks {
  // Called before each round and each batch of it, to show progress. Workers may have other numbers
  // of batches: how often it was called says nothing of who is behind.
  std::function<void(uint64_t round)> at;
  std::function<bool()> stop;               // this worker was told to stop
};

// What came of it. `users_fault`: the user's program failed, rather than the group.
struct EvaluationOutcome {
  Result<EvaluationReport> report;
  bool users_fault = false;
};
EvaluationOutcome Evaluate(TrainState& state, EpochGroup& group, const EvaluationCallbacks& peer);

}  // namespace keel
