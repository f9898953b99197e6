// Driver: the training of a script that owns its loop, in whatever language. The engine runs on a
// thread of its own; what only the script can do comes to it as tasks, one after the other: a
// lane's forward pass and its backward, the optimizer's step, a metric.
// Promises   the same bits as a program of callbacks (train_program.h) that does the same. Samples
//            never pass through here: the script is told which ones a batch has, ahead of its lane
//            by as much as the config says, and keeps them by the batch's number until that is
//            dropped. If the workers' exchange breaks, the lane under way is given up, whatever
//            becomes of its backward, and comes again as another task.
// Does not   touch the script's tensors and generators while it has a task, except in a backward,
//            where the exchange begins. From an Answer() until Next() returns they are the
//            engine's, so a script that does more behind a backward answers after that. Carry
//            thread-local settings (autocast, a CUDA device) to the script.
// Threads    Begin() and all methods by the script's thread.
// Errors     of Next() and Answer(): kInvalid, a call out of turn. Of Join(): those of
//            TrainRun::Run(); kForeign: what the script failed with, with step and lane.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "trainer/handoff.h"
#include "trainer/script_loads.h"
#include "trainer/train_program.h"
#include "trainer/train_run.h"

namespace keel {

struct ScriptTask {
  enum class Kind {
    kLane,       // put the generators at `seed`, compute the loss of `batch`; answer its value
    kBackward,   // run backward of that loss, multiplied by `number`
    kApply,      // let the optimizer make its step; the gradients are complete; answer its rate
    kMeasure,    // the same as kLane for the metric of the evaluation, in evaluation mode
    kStep,       // a step was made
    kEvaluated,  // an evaluation was made
    kEnd,        // nothing more will come: Join()
  };
  Kind kind = Kind::kEnd;
  uint64_t batch = 0;
  uint64_t seed = 0;
  double number = 1;   // kApply: the rate of the config's schedule
  StepReport step = {};
  EvaluationReport evaluation = {};
  bool is_replaced = false;   // tensors have got another step's values since the last task
  ScriptLoads::News news = {};
  uint64_t made = 0;   // steps made, whether applied or skipped, by then; not of kEnd
};

struct ScriptAnswer {
  double number = 0;
  std::string error = {};   // the task failed so; of a backward it may be that the exchange broke
};

// What a script brings. Tensors and texts are the same on every worker.
struct ScriptProgram {
  ModelTensors model = {};
  std::unique_ptr<Optimizer> optimizer = {};   // null: the script's own, by kApply
  // Of the script's own optimizer: its state, and what tells it from others.
  NamedTensors optimizer_state = {};
  std::string optimizer_text = {};
  NamedTensors kept = {};         // TrainProgram::kept
  bool may_compile = false;       // the same
  uint64_t samples = 0;
  std::string data_identity = {};
  uint64_t evaluation_samples = 0;   // 0: there is no evaluation
  uint64_t evaluation_every = 100;
  uint64_t evaluation_batch = 0;
  bool wants_steps = false;       // kStep comes after each
  bool wants_evaluations = false;
  std::function<void(TrainProgram&)> add_logs = {};   // LogRun()
};

class Driver {
 public:
  // `run` outlives it.
  static Result<std::unique_ptr<Driver>> Begin(TrainRun& run, ScriptProgram program,
                                               TrainOutput output = {});
  // A script that goes without Join() has failed.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Empty: nothing is to be done within the limit.
  Result<std::optional<ScriptTask>> Next(Duration limit);
  Status Answer(ScriptAnswer answer);
  // In kApply, before the script's optimizer makes its step: until the answer, those parameters
  // have no gradients that this worker has yet to receive.
  void LeaveOut();
  // The script cannot go on: the engine ends as soon as it needs it, and tells the launcher why.
  void Fail(const std::string& why);
  // Whether the engine's thread has ended.
  bool ended() const { return ended_; }
  // Waits for that. Once.
  Result<TrainResult> Join();

 private:
  explicit Driver(TrainRun& run) : run_(run) {}
  TrainProgram Made(ScriptProgram program);
  Result<ScriptAnswer> Ask(ScriptTask task);
  Status Tell(ScriptTask task);   // whose answer says nothing
  at::Tensor Loss(const Batch& batch);
  Status Backward(const at::Tensor& scaled);
  EvaluationPlan EvaluationOf(const ScriptProgram& program);

  TrainRun& run_;
  Handoff<ScriptTask, ScriptAnswer> handoff_;
  const std::shared_ptr<ScriptLoads> loads_ = std::make_shared<ScriptLoads>();
  std::atomic<bool> is_replaced_{false};
  std::atomic<bool> ended_{false};
  std::vector<at::Tensor> left_out_;           // by the optimizer's next step
  std::optional<WithoutGradients> without_;    // while it makes that
  at::Tensor loss_;   // of the lane under way, for the engine's thread
  uint64_t made_ = 0;   // steps, for the engine's thread
  std::optional<Result<TrainResult>> result_;
  std::thread engine_;
};

}  // namespace keel
