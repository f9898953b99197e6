// The loop of a script: task after task, and what each of them asks for.
#include "tests/trainer/played_script.h"

#include <torch/torch.h>

#include <map>
#include <utility>

#include "store/catch_torch.h"
#include "trainer/numerics/autocast.h"

namespace keel {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(100);

class Player {
 public:
  Player(TrainRun& run, TrainProgram program, const Play& play)
      : config_(run.config()), program_(std::move(program)), play_(play) {}

  Result<TrainResult> Run(TrainRun& run, const TrainOutput& output) {
    KEEL_TRY_ASSIGN(driver_, Driver::Begin(run, Brought(), output));
    for (;;) {
      KEEL_TRY_ASSIGN(const std::optional<ScriptTask> task, driver_->Next(kLookEvery));
      if (!task) continue;
      Note(task->news);
      if (task->kind == ScriptTask::Kind::kEnd) return driver_->Join();
      Result<ScriptAnswer> done = Done(*task);
      const Status told =
          done.ok() ? driver_->Answer(*std::move(done)) : Failed(done.error().message);
      if (!told.ok()) return told.error();
    }
  }

 private:
  ScriptProgram Brought() {
    ScriptProgram brought;
    brought.model = TensorsOf(*program_.model);
    brought.kept = program_.kept;
    brought.optimizer_state = program_.optimizer->state();
    brought.optimizer_text = program_.optimizer->Text();
    if (play_.engines_optimizer) brought.optimizer = std::move(program_.optimizer);
    brought.samples = program_.dataset->size();
    brought.data_identity = program_.dataset->Identity();
    if (program_.evaluation.dataset) {
      brought.evaluation_samples = program_.evaluation.dataset->size();
      brought.evaluation_every = program_.evaluation.every;
      brought.evaluation_batch = program_.evaluation.batch;
    }
    brought.wants_steps = program_.on_step != nullptr;
    brought.wants_evaluations = program_.on_evaluation != nullptr;
    return brought;
  }

  void Note(const ScriptLoads::News& news) {
    for (const ScriptLoads::Wanted& one : news.wanted) wanted_[one.batch] = one;
    for (const uint64_t batch : news.dropped) wanted_.erase(batch);
  }

  Status Failed(const std::string& why) {
    driver_->Fail(why);
    return Ok();
  }

  Result<ScriptAnswer> Done(const ScriptTask& task) {
    using Kind = ScriptTask::Kind;
    if (play_.watch) KEEL_TRY(play_.watch(task));
    KEEL_TRY_ASSIGN(Result<ScriptAnswer> done,
                    CatchTorch("", [&]() -> Result<ScriptAnswer> {
      switch (task.kind) {
        case Kind::kLane: return Lane(task);
        case Kind::kBackward: return Backward(task.number);
        case Kind::kApply:
          KEEL_TRY(program_.optimizer->Step(task.number));
          return ScriptAnswer{task.number};
        case Kind::kMeasure: return Measured(task);
        case Kind::kStep:
          KEEL_TRY(program_.on_step(task.step));
          return ScriptAnswer{};
        case Kind::kEvaluated:
          KEEL_TRY(program_.on_evaluation(task.evaluation));
          return ScriptAnswer{};
        case Kind::kEnd: break;
      }
      return ScriptAnswer{};
    }));
    return done;
  }

  Result<Batch> Loaded(const ScriptTask& task) {
    const auto wanted = wanted_.find(task.batch);
    if (wanted == wanted_.end()) {
      return Error{Code::kInvalid, "nobody told of batch " + std::to_string(task.batch)};
    }
    const auto& [batch, is_evaluation, seed, indices] = wanted->second;
    Dataset& dataset = is_evaluation ? *program_.evaluation.dataset : *program_.dataset;
    at::manual_seed(seed);
    KEEL_TRY_ASSIGN(Batch loaded, dataset.LoadSeeded(indices, seed));
    at::manual_seed(task.seed);
    return Changed(loaded, [&](const at::Tensor& one) { return one.to(config_.device); });
  }

  Result<ScriptAnswer> Lane(const ScriptTask& task) {
    KEEL_TRY_ASSIGN(const Batch batch, Loaded(task));
    const AutocastScope autocast(config_.device.type(), config_.precision);
    loss_ = program_.loss(batch).to(at::kFloat);
    return ScriptAnswer{static_cast<double>(loss_.item<float>())};
  }

  Result<ScriptAnswer> Backward(double factor) {
    const at::Tensor loss = std::exchange(loss_, {});
    const Status done = CatchTorch("", [&] { (factor == 1.0 ? loss : loss * factor).backward(); });
    return ScriptAnswer{.error = done.ok() ? "" : done.error().message};
  }

  Result<ScriptAnswer> Measured(const ScriptTask& task) {
    KEEL_TRY_ASSIGN(const Batch batch, Loaded(task));
    const torch::NoGradGuard no_grad;
    program_.model->eval();
    const AutocastScope autocast(config_.device.type(), config_.precision);
    const double value = program_.evaluation.metric(batch).to(at::kDouble).item<double>();
    program_.model->train();
    return ScriptAnswer{value};
  }

  const TrainConfig config_;
  TrainProgram program_;
  const Play& play_;
  std::map<uint64_t, ScriptLoads::Wanted> wanted_;
  at::Tensor loss_;
  std::unique_ptr<Driver> driver_;   // it ends before what it uses
};

}  // namespace

Result<TrainResult> PlayScript(TrainRun& run, TrainProgram program, const TrainOutput& output,
                               const Play& play) {
  return Player(run, std::move(program), play).Run(run, output);
}

}  // namespace keel
