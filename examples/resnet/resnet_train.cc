// MiniResNet on small images of a record file: convolutions, BatchNorm, SGD with momentum, bf16 on
// request (--precision bf16), and the accuracy on other images as it goes.
//
//   resnet_train --data digits-train.records --validate digits-test.records
#include <torch/torch.h>

#include <cinttypes>
#include <memory>
#include <string>
#include <utility>

#include "base/print_out.h"
#include "examples/models/resnet.h"
#include "trainer/file_datasets.h"
#include "trainer/record_file.h"
#include "trainer/train_main.h"

namespace {

using keel::Code;
using keel::Error;
using keel::Result;

void AddOptions(keel::OptionTable& table) {
  table.Add(keel::Option::Integer("model.width", 16, "Channels of the first stage")
                .Range(1, 4096).Alias("width"));
  table.Add(keel::Option::Integer("model.stages", 3,
                                  "Residual blocks; each has twice the channels of the one before "
                                  "it, on half the pixels")
                .Range(1, 8).Alias("stages"));
  table.Add(keel::Option::Integer("model.classes", 10, "Number of classes; labels are below it")
                .AtLeast(2).Alias("classes"));
  // The path of a file is nobody's business: what is in it is compared anyway.
  table.Add(keel::Option::Text("data", "", "Images to train on, made by `keel records FILE IMAGES`")
                .Placeholder("FILE").Incidental());
  table.Add(keel::Option::Text("validate", "",
                               "Images to validate on, made in the same way; none: do not validate")
                .Placeholder("FILE").Incidental());
  table.Add(keel::Option::Integer("evaluate-every", 50, "Steps between two validations")
                .AtLeast(1).Placeholder("N").Incidental());
}

// How many channels the images have.
Result<int64_t> ChannelsIn(const std::string& path) {
  KEEL_TRY_ASSIGN(const auto file, keel::RecordFile::Open(path));
  const auto image = file->header().FieldNamed("image");
  if (!image || file->header().fields[*image].shape.size() != 3) {
    return Error{Code::kInvalid, path + " holds no images (channels, rows, columns)"};
  }
  return file->header().fields[*image].shape[0];
}

Result<keel::TrainProgram> MakeProgram(const keel::TrainConfig& config,
                                       const keel::Options& options) {
  const std::string& data = options.Text("data");
  if (data.empty()) {
    return Error{Code::kInvalid, "--data is missing: `keel records FILE IMAGES` makes one"};
  }
  keel::TrainProgram program;
  KEEL_TRY_ASSIGN(const int64_t channels, ChannelsIn(data));
  const auto model = std::make_shared<MiniResNet>(
      MiniResNetOptions{.channels = channels,
                        .width = options.Integer("model.width"),
                        .stages = options.Integer("model.stages"),
                        .classes = options.Integer("model.classes")});
  model->to(config.device);
  program.model = model;
  program.loss = [model](const keel::Batch& batch) {
    return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  };
  KEEL_TRY_ASSIGN(program.dataset, keel::RecordDataset({.path = data}));
  KEEL_TRY_ASSIGN(program.optimizer,
                  keel::MakeSgd(keel::TensorsOf(*model).parameters,
                                {.momentum = 0.9, .nesterov = true, .weight_decay = 5e-4}));
  if (options.Text("validate").empty()) return program;
  KEEL_TRY_ASSIGN(program.evaluation.dataset,
                  keel::RecordDataset({.path = options.Text("validate")}));
  program.evaluation.metric = [model](const keel::Batch& batch) {
    return (model->forward(batch.data).argmax(1) == batch.target).to(torch::kFloat).mean();
  };
  program.evaluation.every = static_cast<uint64_t>(options.Integer("evaluate-every"));
  program.evaluation.batch = 64;
  program.on_evaluation = [](const keel::EvaluationReport& report) {
    if (report.rank != 0) return keel::Ok();
    keel::PrintOut("validation step=%" PRIu64 " accuracy=%.2f%% of %" PRIu64 " images\n",
                   report.step, 100 * report.value, report.samples);
    return keel::Ok();
  };
  return program;
}

}  // namespace

int main(int argc, char** argv) {
  keel::TrainConfig defaults{.steps = 300, .lanes = 8, .lane_batch = 8};
  defaults.update.learning_rate = 0.05;
  return keel::TrainMain(argc, argv, {.name = "resnet_train",
                                      .about = "Trains a small residual network on images.",
                                      .defaults = defaults,
                                      .add_options = AddOptions,
                                      .make = MakeProgram});
}
