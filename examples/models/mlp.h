// Mlp: a perceptron with dropout for vectors; the smallest of the example models.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

struct MlpOptions {
  int64_t inputs = 32;
  std::vector<int64_t> hidden = {64, 64};
  int64_t classes = 10;
  double dropout = 0.1;
};

class Mlp : public torch::nn::Module {
 public:
  explicit Mlp(const MlpOptions& options) : dropout_(options.dropout) {
    int64_t width = options.inputs;
    for (const int64_t next : options.hidden) {
      AddLayer(width, next);
      width = next;
    }
    AddLayer(width, options.classes);
  }

  // [batch, inputs] to [batch, classes]
  at::Tensor forward(at::Tensor x) {
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      x = torch::dropout(torch::relu(layers_[i]->forward(x)), dropout_, is_training());
    }
    return layers_.back()->forward(x);
  }

 private:
  void AddLayer(int64_t from, int64_t to) {
    const std::string name = "layer" + std::to_string(layers_.size());
    layers_.push_back(register_module(name, torch::nn::Linear(from, to)));
  }

  const double dropout_;
  std::vector<torch::nn::Linear> layers_;
};
