// The program that the engine trains: each of its callbacks asks the script.
#include "trainer/driver.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/autograd.h>

#include <utility>

#include "base/check.h"
#include "elastic/process/quiet_thread.h"
#include "store/catch_torch.h"

namespace keel {
namespace {

using Kind = ScriptTask::Kind;

// The step of the script's own optimizer.
class AskedOptimizer final : public Optimizer {
 public:
  using Ask = std::function<Result<double>(double rate, std::vector<at::Tensor> left_out)>;
  AskedOptimizer(NamedTensors state, std::string text, Ask ask)
      : state_(std::move(state)), text_(std::move(text)), ask_(std::move(ask)) {}

  Status Step(double learning_rate) override { return StepWithout({}, learning_rate); }
  Status StepWithout(const std::vector<at::Tensor>& left_out, double learning_rate) override {
    KEEL_TRY_ASSIGN(rate_, ask_(learning_rate, left_out));
    return Ok();
  }
  const NamedTensors& state() const override { return state_; }
  std::string Text() const override { return text_; }
  std::optional<double> OwnRate() const override { return rate_; }

 private:
  const NamedTensors state_;
  const std::string text_;
  const Ask ask_;
  double rate_ = 0;
};

// What an error of the script is to those who catch LibTorch's.
[[noreturn]] void Throw(const Error& error) { throw std::runtime_error(error.message); }

// The engine has just seeded it for this very lane, and all others with the same.
uint64_t SeedOfGenerators() { return at::detail::getDefaultCPUGenerator().current_seed(); }

}  // namespace

Result<std::unique_ptr<Driver>> Driver::Begin(TrainRun& run, ScriptProgram program,
                                              TrainOutput output) {
  std::unique_ptr<Driver> driver(new Driver(run));
  auto made = std::make_shared<TrainProgram>(driver->Made(std::move(program)));
  driver->engine_ = StartQuietThread(
      "keel-engine", [self = driver.get(), made, output = std::move(output)] {
        self->result_.emplace(self->run_.Run(std::move(*made), output));
        self->ended_ = true;
        self->handoff_.End();
      });
  return driver;
}

Driver::~Driver() {
  if (!engine_.joinable()) return;
  Fail("the script has gone");
  engine_.join();
}

Result<std::optional<ScriptTask>> Driver::Next(Duration limit) {
  KEEL_TRY_ASSIGN(auto taken, handoff_.Next(limit));
  if (taken.ended) {
    return std::optional<ScriptTask>(ScriptTask{.is_replaced = is_replaced_.exchange(false)});
  }
  if (taken.task) {
    taken.task->is_replaced = is_replaced_.exchange(false);
    taken.task->news = loads_->Take();
  }
  return std::move(taken.task);
}

Status Driver::Answer(ScriptAnswer answer) { return handoff_.Reply(std::move(answer)); }

void Driver::Fail(const std::string& why) { handoff_.Fail(why); }

Result<TrainResult> Driver::Join() {
  if (!engine_.joinable()) return Error{Code::kInvalid, "the training was joined already"};
  engine_.join();
  return *std::move(result_);
}

void Driver::LeaveOut() {
  if (!left_out_.empty()) without_.emplace(std::exchange(left_out_, {}));
}

Result<ScriptAnswer> Driver::Ask(ScriptTask task) {
  task.made = made_;
  KEEL_TRY_ASSIGN(ScriptAnswer answer, handoff_.Ask(std::move(task)));
  if (!answer.error.empty()) return Error{Code::kForeign, answer.error};
  return answer;
}

Status Driver::Tell(ScriptTask task) {
  const Result<ScriptAnswer> answer = Ask(std::move(task));
  return answer.ok() ? Ok() : Status(answer.error());
}

// A leaf: what its gradient is says by how much the engine scales it.
at::Tensor Driver::Loss(const Batch& batch) {
  const Result<ScriptAnswer> answer =
      Ask({.kind = Kind::kLane, .batch = ScriptLoads::NumberOf(batch),
           .seed = SeedOfGenerators()});
  if (!answer.ok()) Throw(answer.error());
  loss_ = at::scalar_tensor(answer->number, at::kFloat).requires_grad_(true);
  return loss_;
}

Status Driver::Backward(const at::Tensor& scaled) {
  const at::Tensor scale = torch::autograd::grad({scaled}, {loss_}).at(0);
  return Tell({.kind = Kind::kBackward, .number = scale.item<double>()});
}

EvaluationPlan Driver::EvaluationOf(const ScriptProgram& program) {
  if (program.evaluation_samples == 0) return {};
  EvaluationPlan plan{.every = program.evaluation_every, .batch = program.evaluation_batch};
  plan.dataset = std::make_unique<ScriptDataset>(loads_, program.evaluation_samples, "", true);
  plan.metric = [this](const Batch& batch) {
    const Result<ScriptAnswer> answer =
        Ask({.kind = Kind::kMeasure, .batch = ScriptLoads::NumberOf(batch),
             .seed = SeedOfGenerators()});
    if (!answer.ok()) Throw(answer.error());
    return at::scalar_tensor(answer->number, at::kDouble);
  };
  return plan;
}

TrainProgram Driver::Made(ScriptProgram program) {
  TrainProgram made;
  made.evaluation = EvaluationOf(program);
  made.face = ModelFace{.tensors = std::move(program.model)};
  made.kept = std::move(program.kept);
  made.may_compile = program.may_compile;
  made.dataset = std::make_unique<ScriptDataset>(loads_, program.samples,
                                                 std::move(program.data_identity), false);
  made.optimizer = std::move(program.optimizer);
  if (made.optimizer == nullptr) {
    made.optimizer = std::make_unique<AskedOptimizer>(
        std::move(program.optimizer_state), std::move(program.optimizer_text),
        [this](double rate, std::vector<at::Tensor> left_out) -> Result<double> {
          left_out_ = std::move(left_out);
          const Result<ScriptAnswer> answer = Ask({.kind = Kind::kApply, .number = rate});
          without_.reset();
          if (!answer.ok()) return answer.error();
          return answer->number;
        });
  }
  made.loss = [this](const Batch& batch) { return Loss(batch); };
  made.backward = [this](const at::Tensor& scaled) { return Backward(scaled); };
  made.on_replaced = [this](uint64_t step) {
    is_replaced_ = true;
    made_ = step;
  };
  made.on_step = [this, tells = program.wants_steps](const StepReport& report) -> Status {
    made_ = report.step;
    return tells ? Tell({.kind = Kind::kStep, .step = report}) : Ok();
  };
  if (program.wants_evaluations) {
    made.on_evaluation = [this](const EvaluationReport& report) -> Status {
      return Tell({.kind = Kind::kEvaluated, .evaluation = report});
    };
  }
  if (program.add_logs) program.add_logs(made);
  return made;
}

}  // namespace keel
