// The three kinds of models that tests train in their own process: small, with dropout, with
// BatchNorm, with tied weights.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "examples/models/gpt.h"
#include "examples/models/mlp.h"
#include "examples/models/resnet.h"
#include "trainer/dataset.h"

namespace keel {

// A model, its data and its loss.
struct Task {
  std::shared_ptr<torch::nn::Module> model;
  std::function<at::Tensor(const Batch&)> loss;
  std::unique_ptr<Dataset> dataset;
};

template <class Model>
std::function<at::Tensor(const Batch&)> CrossEntropyOf(const std::shared_ptr<Model>& model) {
  return [model](const Batch& batch) {
    const at::Tensor logits = model->forward(batch.data);
    return torch::cross_entropy_loss(logits.flatten(0, -2), batch.target.flatten());
  };
}

template <class Model>
Task TaskOf(std::shared_ptr<Model> model, Result<std::unique_ptr<Dataset>> dataset) {
  KEEL_CHECK(dataset.ok(), dataset.error().message);
  return {model, CrossEntropyOf(model), std::move(dataset).value()};
}

// Without dropout, several of them can train in threads of one process, which share a generator.
inline Task MakeTask(const std::string& name, double dropout = 0.1) {
  if (name == "resnet") {
    return TaskOf(std::make_shared<MiniResNet>(MiniResNetOptions{.width = 4}),
                  SyntheticClasses({.samples = 50, .shape = {3, 8, 8}}));
  }
  if (name == "gpt") {
    return TaskOf(std::make_shared<Gpt>(GptOptions{.vocabulary = 16, .width = 16, .heads = 2,
                                                  .dropout = dropout}),
                  SyntheticText({.samples = 50, .length = 8, .vocabulary = 16}));
  }
  return TaskOf(std::make_shared<Mlp>(MlpOptions{.hidden = {16, 16}, .dropout = dropout}),
                SyntheticClasses({.samples = 50}));
}

}  // namespace keel
