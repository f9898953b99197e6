// The trainer's speed on a GPT of chosen size, with made-up text; bench/trainer/ddp_peer.py does
// the same with Python's DDP. Takes the options of every training program (--help).
// Prints, from the first rank: "steps=N median_step_s=S parameters=P", without the first steps.
#include <torch/torch.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "examples/models/gpt.h"
#include "trainer/train_main.h"

namespace {

using namespace keel;

constexpr size_t kWarmUp = 3;

void AddOptions(OptionTable& table) {
  table.Add(Option::Integer("width", 256, "Of the GPT").Range(8, 8192));
  table.Add(Option::Integer("layers", 7, "Of the GPT").Range(1, 100));
  table.Add(Option::Integer("length", 32, "Tokens of a sample").Range(1, 4096));
}

double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

void PrintSpeed(std::vector<double> steps, const torch::nn::Module& model) {
  int64_t parameters = 0;
  for (const at::Tensor& one : model.parameters()) parameters += one.numel();
  std::sort(steps.begin(), steps.end());
  std::printf("steps=%zu median_step_s=%.6f parameters=%" PRId64 "\n", steps.size(),
              steps[steps.size() / 2], parameters);
  std::fflush(stdout);
}

Result<TrainProgram> MakeProgram(const TrainConfig& config, const Options& options) {
  TrainProgram program;
  const auto model = std::make_shared<Gpt>(GptOptions{.vocabulary = 256,
                                                      .length_max = options.Integer("length"),
                                                      .width = options.Integer("width"),
                                                      .heads = 8,
                                                      .layers = options.Integer("layers")});
  model->to(config.device);
  program.model = model;
  program.loss = [model](const Batch& batch) {
    const at::Tensor logits = model->forward(batch.data);
    return torch::cross_entropy_loss(logits.flatten(0, -2), batch.target.flatten());
  };
  KEEL_TRY_ASSIGN(program.dataset, SyntheticText({.seed = config.seed,
                                                  .samples = 4096,
                                                  .length = options.Integer("length"),
                                                  .vocabulary = 256}));
  KEEL_TRY_ASSIGN(program.optimizer, MakeAdamW(TensorsOf(*model).parameters, {}));
  const auto last = std::make_shared<TimePoint>(RealClock().Monotonic());
  const auto steps = std::make_shared<std::vector<double>>();
  program.on_step = [=, total = config.steps](const StepReport& report) -> Status {
    const TimePoint now = RealClock().Monotonic();
    if (report.step > kWarmUp) steps->push_back(Seconds(now - *last));
    *last = now;
    if (report.step == total && report.rank == 0 && !steps->empty()) PrintSpeed(*steps, *model);
    return Ok();
  };
  return program;
}

}  // namespace

int main(int argc, char** argv) {
  return keel::TrainMain(argc, argv, {.name = "gpt_bench",
                                      .about = "Measures the trainer on a GPT of chosen size.",
                                      .defaults = {.steps = 23, .lanes = 2, .lane_batch = 2},
                                      .add_options = AddOptions,
                                      .make = MakeProgram});
}
