// LaneWork: what a worker computes of one step: its own lanes, and their part in the exchange.
// Promises   a lane's result depends on the state, the step and the lane alone, not on which
//            worker computes it or after which other lanes: generators are seeded and buffers put
//            back before each. After success the state is pending: gradients and the buffers' mean
//            are complete.
// Does not   vote or apply (trainer/loop/epoch_run.h).
// Threads    one.
// Errors     those of the exchange, where the group broke; kInvalid or kForeign, naming step and
//            lane, where the user's dataset, model or loss failed. A GPU that is lost ends the
//            process (trainer/group/nccl_links.h).
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/exchange/exchange.h"
#include "trainer/loop/lane_result.h"
#include "trainer/loop/recheck_plan.h"
#include "trainer/state/train_state.h"
#include "trainer/step_times.h"

namespace keel {

// What a lane made, on the CPU, to be looked at where it differs from what another worker made.
struct LaneTensors {
  at::Tensor buffers = {};                   // LaneBuffers::LaneResult()
  std::vector<at::Tensor> gradients = {};    // by parameter; undefined: the loss does not reach it
  bool kept() const { return !gradients.empty(); }
};

struct LaneWork {
  std::vector<double> losses = {};  // of our own lanes
  Status status = Ok();
  bool users_fault = false;         // the program failed, and would fail again
  StepTimes times = {};             // data, forward, backward, exchange, recheck
  // What came of the lanes that the task names.
  std::optional<LaneResult> own = {};
  std::optional<LaneResult> other = {};
  LaneTensors own_tensors = {};
  LaneTensors other_tensors = {};
  std::optional<SumsMade> sums = {};   // where the task says that they are made twice
};
LaneWork ComputeLanes(TrainState& state, Exchange& exchange, const RecheckTask& recheck = {});

// The samples of any lane of this step. Buffers and generators are as that lane begins then.
Result<Batch> BatchOf(TrainState& state, int lane);

// Any lane of this step, which counts for nothing: before ComputeLanes(), or after it. Gradients
// are as before then; buffers are not, but a pending step brings its own. kForeign: the program
// failed.
struct Again {
  int lane = 0;
  LaneTensors* tensors = nullptr;   // to be filled in, if they are not too large to be kept
  const Batch* batch = nullptr;     // in place of the lane's own samples
};
Result<LaneResult> ComputeAgain(TrainState& state, Exchange& exchange, const Again& again);

}  // namespace keel
