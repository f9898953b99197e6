// The smallest training program: a model, a loss, samples, an optimizer. Everything else (how many
// workers there are, who dies, who joins) is the trainer's business, and does not change one bit.
//
//   minimal_train --steps 60                                             # alone
//   keelrun --standalone --nproc-per-node 3 minimal_train --steps 60     # the same last line
#include <torch/torch.h>

#include <memory>
#include <utility>

#include "examples/models/mlp.h"
#include "trainer/train_main.h"

namespace {

using keel::Result;

void AddOptions(keel::OptionTable& table) {
  table.Add(keel::Option::Integer("model.width", 64, "Width of the two hidden layers")
                .Range(1, 65536).Alias("width"));
  table.Add(keel::Option::Integer("samples", 1024, "Samples in the made-up dataset").AtLeast(1));
}

Result<keel::TrainProgram> MakeProgram(const keel::TrainConfig& config,
                                       const keel::Options& options) {
  keel::TrainProgram program;
  // The generators are seeded: every worker builds the same model.
  const int64_t width = options.Integer("model.width");
  const auto model = std::make_shared<Mlp>(
      MlpOptions{.inputs = 32, .hidden = {width, width}, .classes = 10, .dropout = 0.1});
  model->to(config.device);
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
