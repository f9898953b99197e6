// TrainProgram: what a user brings to be trained, and what its callbacks are told.
// Promises   callbacks run on the training thread of every worker.
// Threads    plain values.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/dataset.h"
#include "trainer/optimizer.h"
#include "trainer/step_times.h"
#include "trainer/tensors.h"

namespace keel {

struct StepOutcome {
  bool applied = true;
  double learning_rate = 0;
  std::optional<double> gradient_norm = {};  // before clipping; if it was computed
  std::string note = {};                // why it was not applied: "loss of lane 3 is nan"
};

// After each step, on every worker.
struct StepReport {
  uint64_t step = 0;         // steps made
  float loss = 0;            // the mean of all lanes'
  std::vector<float> lane_losses;
  StepOutcome outcome;
  int rank = 0;
  int world = 1;
  uint64_t data_epoch = 0;   // in which the step's samples begin
  StepTimes times = {};      // this worker's; zeros if reports of others decided the step
  // By rank, from the votes; empty if reports of others decided the step.
  std::vector<int64_t> compute_ns = {};
  std::vector<int> lanes = {};
  int64_t epoch = 0;         // the membership epoch's number
};

struct EvaluationPlan {
  std::unique_ptr<Dataset> dataset = {};                  // null: there is no evaluation
  std::function<at::Tensor(const Batch&)> metric = {};    // the mean over a batch's samples
  uint64_t every = 100;                                   // steps
  uint64_t batch = 0;                                     // samples at once; 0: the lanes' own

  // After so many steps.
  bool IsDue(uint64_t steps) const { return dataset && steps > 0 && steps % every == 0; }
};

struct EvaluationReport {
  uint64_t step = 0;        // steps made
  double value = 0;         // the mean over all samples
  uint64_t samples = 0;
  bool abandoned = false;   // somebody was told to stop: there is no value
  Duration took{0};
  int rank = 0;
  int world = 1;
};

// What a user brings.
struct TrainProgram {
  std::shared_ptr<torch::nn::Module> model = {};
  std::function<at::Tensor(const Batch&)> loss;   // of one lane's samples: a scalar
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Optimizer> optimizer;           // over the parameters of TensorsOf(*model)
  std::function<Status(const StepReport&)> on_step = {};
  EvaluationPlan evaluation = {};                 // none unless it has a dataset
  // After each evaluation that was not abandoned, on every worker. It may come again for a step, so
  // what it changes in a buffer of the model is undone.
  std::function<Status(const EvaluationReport&)> on_evaluation = {};
  std::optional<ModelFace> face = {};             // the model where it is no module
  // Runs the backward of what `loss` gave, scaled where losses are; in whatever thread, to its end.
  // Empty: loss.backward(). If the workers' exchange breaks meanwhile, it fails, and what it tells
  // of that does not matter.
  std::function<Status(const at::Tensor& loss)> backward = {};
  // Called when tensors of the state hold another step's: those of others, or of a checkpoint, with
  // how many steps are made now.
  std::function<void(uint64_t step)> on_replaced = {};
  // It may compile what it computes for the first time, so that takes up to kStartLimit
  // (elastic/protocol/limits.h) before this worker is held to hang.
  bool may_compile = false;
  NamedTensors kept = {};   // whatever else must go on exactly: live, the same on every worker
};

}  // namespace keel
