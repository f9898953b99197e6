// A small GPT over bytes: learns a text, tells its loss on another one as it goes, and writes text
// of its own from any of its checkpoints.
//
//   gpt_train --data train.tokens --validate other.tokens --checkpoint-dir runs/gpt
//   gpt_train --generate 200 --from runs/gpt@latest --prompt 'ROMEO:'
//
// Promises   the text depends on checkpoint, prompt, temperature and seed alone.
// Does not   keep what it computed for earlier bytes: each new one costs a whole forward pass.
#include <torch/torch.h>

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/posix_files.h"
#include "base/print_out.h"
#include "examples/models/gpt.h"
#include "trainer/file_datasets.h"
#include "trainer/saved_config.h"
#include "trainer/token_file.h"
#include "trainer/train_main.h"
#include "trainer/weights.h"

namespace {

using keel::Code;
using keel::Error;
using keel::Result;
using keel::Status;
using keel::Status;

constexpr int64_t kBytes = 256;   // a token is a byte

void AddOptions(keel::OptionTable& table) {
  // The path of a file is nobody's business: what is in it is compared anyway.
  table.Section("The model");
  table.Add(keel::Option::Integer("model.width", 64, "Width of each layer; a multiple of --heads")
                .AtLeast(1).Alias("width"));
  table.Add(keel::Option::Integer("model.layers", 2, "Number of transformer blocks")
                .Range(1, 1024).Alias("layers"));
  table.Add(keel::Option::Integer("model.heads", 4, "Heads of attention in each block")
                .Range(1, 1024).Alias("heads"));
  table.Add(keel::Option::Integer("model.length", 32, "Bytes that the model sees at once")
                .Range(1, 1 << 20).Alias("length"));
  table.Add(keel::Option::Real("dropout", 0.1, "Probability of dropout in training")
                .RealRange(0, 0.9));
  table.Section("The text");
  table.Add(keel::Option::Text("data", "", "Text to train on, made by `keel tokens FILE TEXT`")
                .Placeholder("FILE").Incidental());
  table.Add(keel::Option::Text("validate", "",
                               "Text to validate on, made in the same way; none: do not validate")
                .Placeholder("FILE").Incidental());
  table.Add(keel::Option::Integer("evaluate-every", 100, "Steps between two validations")
                .AtLeast(1).Placeholder("N").Incidental());
  table.Section("Writing text instead of training");
  table.Add(keel::Option::Integer("generate", 0, "How many bytes to write; 0: train")
                .Range(0, 1 << 20).Placeholder("N").Incidental());
  table.Add(keel::Option::Text("from", "",
                               "Weights to load: DIR or DIR@STEP of checkpoints, or a .safetensors "
                               "file; the options of the model are taken from there")
                .Placeholder("PATH").Incidental());
  table.Add(keel::Option::Text("prompt", "", "Text to continue; empty: begin with a new line")
                .Incidental());
  table.Add(keel::Option::Real("temperature", 0.8,
                               "0: always take the likeliest byte; 1: draw bytes as learned")
                .RealRange(0, 100).Incidental());
  table.AddExample("gpt_train --generate 200 --from runs/gpt@300 --prompt ROMEO: --seed 7",
                   "text from step 300; another seed gives another text");
}

Result<std::shared_ptr<Gpt>> MakeModel(const keel::Options& options) {
  const int64_t width = options.Integer("model.width");
  const int64_t heads = options.Integer("model.heads");
  if (width % heads != 0) {
    return Error{Code::kInvalid, "--width " + std::to_string(width) +
                                     " is not a multiple of --heads " + std::to_string(heads)};
  }
  return std::make_shared<Gpt>(GptOptions{.vocabulary = kBytes,
                                          .length_max = options.Integer("model.length"),
                                          .width = width,
                                          .heads = heads,
                                          .layers = options.Integer("model.layers"),
                                          .dropout = options.Real("dropout")});
}

// --- Training ---

Result<std::unique_ptr<keel::Dataset>> OpenText(const keel::Options& options, const char* option) {
  const std::string& path = options.Text(option);
  KEEL_TRY_ASSIGN(const auto file, keel::TokenFile::Open(path));
  if (file->header().vocabulary > kBytes || !file->header().alphabet.empty()) {
    return Error{Code::kInvalid, path + " does not hold bytes: make it with `keel tokens`, without "
                                        "--as"};
  }
  return keel::TokenDataset({.path = path,
                             .context = static_cast<uint64_t>(options.Integer("model.length"))});
}

Result<keel::TrainProgram> MakeProgram(const keel::TrainConfig& config,
                                       const keel::Options& options) {
  if (options.Text("data").empty()) {
    return Error{Code::kInvalid, "--data is missing: `keel tokens FILE book.txt` makes one"};
  }
  keel::TrainProgram program;
  KEEL_TRY_ASSIGN(const std::shared_ptr<Gpt> model, MakeModel(options));
  model->to(config.device);
  program.model = model;
  program.loss = [model](const keel::Batch& batch) {
    const at::Tensor logits = model->forward(batch.data);
    return torch::cross_entropy_loss(logits.flatten(0, 1), batch.target.flatten());
  };
  KEEL_TRY_ASSIGN(program.dataset, OpenText(options, "data"));
  KEEL_TRY_ASSIGN(program.optimizer,
                  keel::MakeAdamW(keel::TensorsOf(*model).parameters, {.beta2 = 0.99}));
  if (options.Text("validate").empty()) return program;
  KEEL_TRY_ASSIGN(program.evaluation.dataset, OpenText(options, "validate"));
  program.evaluation.metric = program.loss;
  program.evaluation.every = static_cast<uint64_t>(options.Integer("evaluate-every"));
  program.evaluation.batch = 32;
  program.on_evaluation = [](const keel::EvaluationReport& report) {
    if (report.rank != 0) return keel::Ok();
    keel::PrintOut("validation step=%" PRIu64 " loss=%.4f\n", report.step, report.value);
    return keel::Ok();
  };
  return program;
}

// --- Writing ---

int64_t NextByte(const at::Tensor& logits, double temperature) {
  if (temperature == 0) return logits.argmax().item<int64_t>();
  return torch::multinomial(torch::softmax(logits / temperature, 0), 1).item<int64_t>();
}

// What a terminal may do something else with than show it is shown as a question mark.
Status Print(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    text += byte == '\n' || (code >= ' ' && code != 127) ? byte : '?';
  }
  return keel::PrintOutText(text);
}

bool WantsText(const keel::Options& options) { return options.Integer("generate") > 0; }

Status Write(const keel::TrainConfig& config, const keel::Options& given) {
  keel::Options options = given;
  if (options.Text("from").empty()) {
    return Error{Code::kInvalid, "--generate needs --from: the directory of checkpoints"};
  }
  keel::PosixFiles files;
  KEEL_TRY(keel::TakeOptionsOfWeights(files, options.Text("from"), "model.", &options));
  KEEL_TRY_ASSIGN(const std::shared_ptr<Gpt> model, MakeModel(options));
  const int64_t length = options.Integer("model.length");
  KEEL_TRY(keel::LoadWeights(*model, files, options.Text("from")));
  model->eval();
  model->to(config.device);
  const torch::NoGradGuard no_grad;
  const std::string prompt = options.Text("prompt").empty() ? "\n" : options.Text("prompt");
  std::vector<int64_t> bytes;
  for (const char byte : prompt) bytes.push_back(static_cast<unsigned char>(byte));
  KEEL_TRY(Print(prompt));
  for (int64_t written = 0; written < given.Integer("generate"); ++written) {
    const auto seen = std::min(static_cast<int64_t>(bytes.size()), length);
    const at::Tensor input =
        torch::tensor(std::vector<int64_t>(bytes.end() - seen, bytes.end()), config.device);
    const at::Tensor logits = model->forward(input.unsqueeze(0)).select(0, 0).select(0, seen - 1);
    bytes.push_back(NextByte(logits, options.Real("temperature")));
    const char byte = static_cast<char>(bytes.back());
    KEEL_TRY(Print({&byte, 1}));
  }
  return Print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  keel::TrainConfig defaults{.steps = 600, .lanes = 8, .lane_batch = 4};
  defaults.update.learning_rate = 0.004;
  defaults.update.clip_norm = 1;
  return keel::TrainMain(argc, argv, {.name = "gpt_train",
                                      .about = "Trains a small GPT on the bytes of a text.",
                                      .defaults = defaults,
                                      .add_options = AddOptions,
                                      .make = MakeProgram,
                                      .instead = {.wanted = WantsText, .run = Write}});
}
