// The smallest training program: a model, a loss, samples, an optimizer. Everything else (how many
// workers there are, who dies, who joins) is the trainer's business, and does not change one bit.
//
//   minimal_train --steps 60                                             # alone
//   keelrun --standalone --nproc-per-node 3 minimal_train --steps 60     # the same last line
#include <torch/torch.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "examples/models/mlp.h"
#include "trainer/train_main.h"

namespace {

using keel::Result;

void AddOptions(keel::OptionTable& table) {
  table.Add(keel::Option::Integer("width", 64, "Of the two hidden layers").Range(1, 65536));
  table.Add(keel::Option::Integer("samples", 1024, "Of the made-up dataset").AtLeast(1));
  table.Add(keel::Option::Integer("log-every", 10, "Steps between two lines; 0: none").AtLeast(0));
}

Result<keel::TrainProgram> MakeProgram(const keel::TrainConfig& config,
                                       const keel::Options& options) {
  keel::TrainProgram program;
  // The generators are seeded: every worker builds the same model.
  const int64_t width = options.Integer("width");
  const auto model = std::make_shared<Mlp>(
      MlpOptions{.inputs = 32, .hidden = {width, width}, .classes = 10, .dropout = 0.1});
  program.model = model;
  program.loss = [model](const keel::Batch& batch) {
    return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  };
  KEEL_TRY_ASSIGN(program.dataset,
                  keel::SyntheticClasses({.seed = config.seed,
                                          .samples = options.Integer("samples"),
                                          .shape = {32},
                                          .classes = 10}));
  KEEL_TRY_ASSIGN(program.optimizer, keel::MakeAdamW(keel::TensorsOf(*model).parameters, {}));
  const uint64_t log_every = static_cast<uint64_t>(options.Integer("log-every"));
  program.on_step = [log_every](const keel::StepReport& report) -> keel::Status {
    if (report.rank != 0 || log_every == 0 || report.step % log_every != 0) return keel::Ok();
    std::printf("step=%llu loss=%.9g lr=%g workers=%d\n",
                static_cast<unsigned long long>(report.step), static_cast<double>(report.loss),
                report.outcome.learning_rate, report.world);
    std::fflush(stdout);
    return keel::Ok();
  };
  return program;
}

}  // namespace

int main(int argc, char** argv) {
  return keel::TrainMain(argc, argv, {.name = "minimal_train",
                                      .about = "Trains a small perceptron on made-up classes.",
                                      .defaults = {.steps = 100, .lanes = 8, .lane_batch = 8},
                                      .add_options = AddOptions,
                                      .make = MakeProgram});
}
