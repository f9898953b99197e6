// A training program for tests: minimal_train with a choice of models, which says at each step who
// and where it is, and what all lanes lost: "step N rank R of W pid P loss L lanes A,B,C".
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/environment.h"
#include "base/print_out.h"
#include "examples/models/gpt.h"
#include "examples/models/mlp.h"
#include "examples/models/resnet.h"
#ifdef KEEL_OVER_THE_STANDIN
#include "tests/standin/host_queue.h"
#endif
#include "tests/trainer/played_script.h"
#include "tests/trainer/rigged_bits.h"
#include "tests/trainer/rigged_stop.h"
#include "trainer/early_stop.h"
#include "trainer/group/epoch_group.h"
#include "trainer/train_main.h"
#include "trainer/train_options.h"

namespace {

using keel::Result;

template <class Model>
keel::Status Put(keel::TrainProgram& program, std::shared_ptr<Model> model,
                 Result<std::unique_ptr<keel::Dataset>> dataset) {
  KEEL_TRY_ASSIGN(program.dataset, std::move(dataset));
  program.loss = [model](const keel::Batch& batch) {
    keel::StandStillIfRigged(model->is_training() ? "forward" : "metric");
    const at::Tensor logits = model->forward(batch.data);
    at::Tensor loss = torch::cross_entropy_loss(logits.flatten(0, -2), batch.target.flatten());
    if (loss.requires_grad()) {
      loss.register_hook([](const at::Tensor&) { keel::StandStillIfRigged("backward"); });
    }
    return loss;
  };
  program.model = std::move(model);
  return keel::Ok();
}

// Learns nothing: a lane's loss is the indices of its samples, written as digits of a number to the
// base of the dataset's size. So what a step reports says which samples it was made of.
keel::Status PutIndices(keel::TrainProgram& program, int64_t samples) {
  const auto model = std::make_shared<torch::nn::LinearImpl>(1, 1);
  const at::Tensor indices = torch::arange(samples, torch::kFloat);
  KEEL_TRY_ASSIGN(program.dataset, keel::InMemory(indices, torch::zeros({samples})));
  program.loss = [model, samples](const keel::Batch& batch) {
    float number = 0;
    for (int64_t i = batch.data.numel() - 1; i >= 0; --i) {
      number = number * static_cast<float>(samples) + batch.data[i].item<float>();
    }
    return model->forward(torch::zeros({1, 1})).sum() * 0 + number;
  };
  program.model = model;
  return keel::Ok();
}

keel::Status PutModel(keel::TrainProgram& program, const keel::Options& options,
                      int64_t samples) {
  const std::string& name = options.Text("model");
  if (name == "resnet") {
    return Put(program, std::make_shared<MiniResNet>(MiniResNetOptions{.width = 4}),
               keel::SyntheticClasses({.samples = samples, .shape = {3, 8, 8}}));
  }
  if (name == "gpt") {
    return Put(program,
               std::make_shared<Gpt>(GptOptions{.vocabulary = 16, .width = 16,
                                                .heads = options.Integer("heads")}),
               keel::SyntheticText({.samples = samples, .length = 8, .vocabulary = 16}));
  }
  if (name == "indices") return PutIndices(program, samples);
  return Put(program, std::make_shared<Mlp>(MlpOptions{.hidden = {32, 32}}),
             keel::SyntheticClasses({.samples = samples}));
}

// The loss over as many samples again, every so many steps, told by the first rank: "evaluation at
// N of S samples V".
keel::Status PutEvaluation(keel::TrainProgram& program, const keel::Options& options) {
  const int64_t every = options.Integer("evaluate-every");
  if (every == 0) return keel::Ok();
  keel::TrainProgram other;
  KEEL_TRY(PutModel(other, options, options.Integer("samples") + 1));
  program.evaluation.dataset = std::move(other.dataset);
  program.evaluation.metric = program.loss;
  program.evaluation.every = static_cast<uint64_t>(every);
  program.on_evaluation = [](const keel::EvaluationReport& report) {
    if (report.rank != 0) return keel::Ok();
    keel::PrintOut("evaluation at %" PRIu64 " of %" PRIu64 " samples %.17g\n", report.step,
                   report.samples, report.value);
    return keel::Ok();
  };
  return keel::Ok();
}

// What the program knows of itself as it runs.
struct Moment {
  uint64_t steps_seen = 0;
  int rank = -1;
  bool poisoned = false;   // the lane that is being computed
};

// Notes whether the sample that poisons losses is among those asked for.
class WatchedDataset : public keel::Dataset {
 public:
  WatchedDataset(std::unique_ptr<keel::Dataset> inner, int64_t poison,
                 std::shared_ptr<Moment> moment)
      : inner_(std::move(inner)), poison_(poison), moment_(std::move(moment)) {}
  uint64_t size() const override { return inner_->size(); }
  // Who watches for the poison must hear of it in its own lane's turn.
  keel::Loading loading() const override {
    return poison_ < 0 ? inner_->loading() : keel::Loading::kInStep;
  }
  Result<keel::Batch> Load(std::span<const uint64_t> indices) override {
    if (poison_ >= 0) {
      moment_->poisoned = std::count(indices.begin(), indices.end(),
                                     static_cast<uint64_t>(poison_)) > 0;
    }
    keel::StandStillIfRigged("data");
    return inner_->Load(indices);
  }

 private:
  const std::unique_ptr<keel::Dataset> inner_;
  const int64_t poison_;
  const std::shared_ptr<Moment> moment_;
};

// As if a device computed each lane for so long, in which it needs no processor of ours.
void PutLaneTime(keel::TrainProgram& program, keel::Duration lane_time) {
  if (lane_time == keel::Duration(0)) return;
  program.loss = [inner = program.loss, lane_time](const keel::Batch& batch) {
    keel::RealClock().SleepFor(lane_time);
    return inner(batch);
  };
}

// What goes wrong on purpose: samples that make a loss NaN, or an exception of one rank.
void PutFaults(keel::TrainProgram& program, const std::shared_ptr<Moment>& moment,
               const keel::Options& options) {
  program.dataset = std::make_unique<WatchedDataset>(std::move(program.dataset),
                                                     options.Integer("poison"), moment);
  const int64_t rank = options.Integer("throw-rank");
  const auto step = static_cast<uint64_t>(options.Integer("throw-step"));
  program.loss = [inner = program.loss, moment, rank, step](const keel::Batch& batch) {
    if (moment->rank == rank && moment->steps_seen == step) {
      throw std::runtime_error("the test's own mistake");
    }
    const at::Tensor loss = inner(batch);
    return moment->poisoned ? loss * std::numeric_limits<float>::quiet_NaN() : loss;
  };
}

// As %.9g: enough to tell any two floats apart.
std::string Text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

void Say(const keel::StepReport& report) {
  std::string lanes;
  for (const float loss : report.lane_losses) {
    if (!lanes.empty()) lanes += ',';
    lanes += Text(loss);
  }
  keel::PrintOut("step %" PRIu64 " rank %d of %d pid %d loss %s lanes %s\n", report.step,
                 report.rank, report.world, static_cast<int>(getpid()), Text(report.loss).c_str(),
                 lanes.c_str());
}

Result<keel::TrainProgram> MakeProgram(const keel::TrainConfig& config,
                                       const keel::Options& options) {
  keel::TrainProgram program;
  KEEL_TRY(PutModel(program, options, options.Integer("samples")));
  program.model->to(config.device);
  const keel::NamedTensors parameters = keel::TensorsOf(*program.model).parameters;
  if (options.Text("optimizer") == "sgd") {
    KEEL_TRY_ASSIGN(program.optimizer, keel::MakeSgd(parameters, {.momentum = 0.9}));
  } else {
    KEEL_TRY_ASSIGN(program.optimizer, keel::MakeAdamW(parameters, {}));
  }
  KEEL_TRY(PutEvaluation(program, options));
  PutLaneTime(program, options.Time("lane-time"));
  const auto moment = std::make_shared<Moment>();
  PutFaults(program, moment, options);
  keel::RigBits(program, [moment] { return moment->steps_seen; });
  const keel::Duration pause = options.Time("pause");
  const int64_t full_world = options.Integer("full-world");
  program.on_step = [moment, pause, full_world](const keel::StepReport& report) -> keel::Status {
    moment->steps_seen = report.step;
    moment->rank = report.rank;
    keel::StandStillIfRigged("on_step");
    Say(report);
    const bool is_full = full_world > 0 && report.world >= full_world;
    if (pause > keel::Duration(0) && !is_full) keel::RealClock().SleepFor(pause);
    return keel::Ok();
  };
  return program;
}

void AddOptions(keel::OptionTable& table) {
  table.Add(keel::Option::Choice("model", {"mlp", "resnet", "gpt", "indices"}, "mlp",
                                 "What is trained"));
  table.Add(keel::Option::Choice("optimizer", {"adamw", "sgd"}, "adamw", "What trains it"));
  table.Add(keel::Option::Integer("samples", 100, "Of the dataset").AtLeast(1));
  table.Add(keel::Option::Integer("heads", 2, "Of the gpt; their tensors are the same").AtLeast(1));
  table.Add(
      keel::Option::Integer("evaluate-every", 0, "Steps; 0: never").AtLeast(0).Incidental());
  table.Add(keel::Option::Time("pause", "0", "After each step").Incidental());
  table.Add(keel::Option::Time("lane-time", "0", "Before each lane's loss, as if it took so long")
                .Incidental());
  table.Add(keel::Option::Integer("full-world", 0,
                                  "Workers with whom there is no pause after a step; 0: always one")
                .AtLeast(0).Incidental());
  table.Add(keel::Option::Integer("poison", -1, "Sample that makes its lane's loss NaN; -1: none")
                .AtLeast(-1).Incidental());
  table.Add(keel::Option::Flag("played", false, "Train as a script does, by tasks").Incidental());
  table.Add(keel::Option::Integer("throw-rank", -1, "Who throws an exception; -1: nobody")
                .AtLeast(-1).Incidental());
  table.Add(keel::Option::Integer("throw-step", 5, "After how many steps").AtLeast(0).Incidental());
}

// The same as TrainMain, but that the program is played as a script.
int PlayMain(int argc, char** argv, const keel::TrainMainSpec& spec) {
  keel::PrepareForGroups();
  keel::TrainOptions declared =
      keel::MakeTrainOptions(spec.name, spec.about, spec.defaults, spec.add_options);
  const auto train = [&]() -> Result<int> {
    KEEL_TRY_ASSIGN(const keel::Options options,
                    keel::ParseOptions(declared.table, keel::RealInputs(argc, argv)));
    KEEL_TRY_ASSIGN(keel::TrainRunOptions wanted,
                    keel::ReadTrainOptions(options, declared, spec.defaults));
    wanted.environment = keel::OwnEnvironment();
    KEEL_TRY_ASSIGN(const auto run, keel::TrainRun::Open(std::move(wanted)));
    keel::EndEarlyStop();
    KEEL_TRY_ASSIGN(keel::TrainProgram program, spec.make(run->config(), options));
    KEEL_TRY_ASSIGN(const keel::TrainResult result,
                    keel::PlayScript(*run, std::move(program), keel::TrainOutput{
                                         .print = [](const std::string& line) {
                                           (void)keel::PrintOutText(line + "\n");
                                         }}));
    return keel::ExitCodeOf(result);
  };
  const Result<int> code = train();
  if (code.ok()) return *code;
  std::fprintf(stderr, "%s: %s\n", spec.name.c_str(), code.error().message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef KEEL_OVER_THE_STANDIN
  keel::ExchangeOverTheStandIn();
#endif
  const keel::TrainMainSpec spec{.name = "model_train",
                                 .about = "Trains one of the tests' models.",
                                 // Survivors compare even these small states by pieces.
                                 .defaults = {.steps = 20, .lanes = 8, .lane_batch = 4,
                                              .piece_bytes = 4 << 10},
                                 .add_options = AddOptions,
                                 .make = MakeProgram};
  const bool is_played = std::find(argv, argv + argc, std::string("--played")) != argv + argc;
  return is_played ? PlayMain(argc, argv, spec) : keel::TrainMain(argc, argv, spec);
}
