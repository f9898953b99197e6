// Optimizer: turns complete gradients into new parameters.
// Promises   Step() is a pure function of parameters, gradients, state and rate, with the same
//            bits on every worker. All state exists from the start (zeros), so a newcomer lists
//            the same tensors as workers that have trained for hours. Parameters without a
//            gradient are left alone, and so is their state.
// Does not   check whether gradients are finite, or scale or clip them: trainer/state/update.h
//            does that before.
// Threads    one.
// Errors     kInvalid: settings out of range, an optimizer that cannot be used; kForeign.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/tensors.h"

namespace keel {

// These parameters have no gradients as long as it lives.
class WithoutGradients {
 public:
  explicit WithoutGradients(std::vector<at::Tensor> parameters)
      : parameters_(std::move(parameters)) {
    for (const at::Tensor& parameter : parameters_) {
      gradients_.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
    }
  }
  ~WithoutGradients() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = std::move(gradients_[i]);
    }
  }
  WithoutGradients(const WithoutGradients&) = delete;
  WithoutGradients& operator=(const WithoutGradients&) = delete;

 private:
  const std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;
};

class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Uses the gradients that the parameters hold.
  virtual Status Step(double learning_rate) = 0;
  // The same, leaving alone some of the parameters, which have no gradient meanwhile.
  virtual Status StepWithout(const std::vector<at::Tensor>& left_out, double learning_rate) {
    const WithoutGradients without(left_out);
    return Step(learning_rate);
  }
  // "layer1.weight.exp_avg" ...: live tensors, in a fixed order. What is written into them counts
  // from the next Step() on.
  virtual const NamedTensors& state() const = 0;
  // "adamw beta1=0.9 ...": for logs and the layout that workers compare.
  virtual std::string Text() const = 0;
  // Which parameters decay, likewise; empty: the optimizer does not tell.
  virtual std::string DecayText() const { return ""; }
  // The rate that the last Step() took, if that is the optimizer's own business; what Step() is
  // given does not matter then.
  virtual std::optional<double> OwnRate() const { return std::nullopt; }
};

// Which parameters are exempt from weight decay.
struct DecayRule {
  bool spare_vectors = true;  // tensors of fewer than two dimensions: biases, norms' weights
  // Patterns with '*' and '?' for whole names: "*.embedding.*".
  std::vector<std::string> spare_names = {};
  bool Decays(const NamedTensor& parameter) const;
  // For the fingerprint.
  std::string Text() const;
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  DecayRule decay = {};
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  DecayRule decay = {};
};

// Both use ATen's fused kernels, on CPU and CUDA: one call for parameters that decay, one for the
// others.
Result<std::unique_ptr<Optimizer>> MakeAdamW(NamedTensors parameters, const AdamWOptions& options);
Result<std::unique_ptr<Optimizer>> MakeSgd(NamedTensors parameters, const SgdOptions& options);

// Adapts any optimizer of torch::optim that updates from gradients alone: Adagrad, Adam, AdamW,
// RMSprop, SGD (not LBFGS, which evaluates the loss again). Parameter groups keep the proportions
// of their rates: Step(r) gives r to the first group. `parameters` names the tensors that the
// optimizer was made with.
Result<std::unique_ptr<Optimizer>> AdaptTorchOptimizer(
    NamedTensors parameters, std::unique_ptr<torch::optim::Optimizer> optimizer);

}  // namespace keel
