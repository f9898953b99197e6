// AdamW and SGD: they pass lists of tensors to ATen's fused kernels, in one call for those that
// decay and one for the others.
#include "trainer/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>

#include <utility>

#include "base/text.h"
#include "ckpt/glob.h"
#include "store/catch_torch.h"

namespace keel {
namespace {

using Tensors = std::vector<at::Tensor>;

// What one call of a kernel takes: those members of a group that have a gradient.
struct Lists {
  Tensors parameters, gradients, first, second, steps;
};

struct Group {
  double weight_decay = 0;
  std::vector<size_t> members;  // indices into the parameters
};

std::vector<Group> GroupsOf(const NamedTensors& parameters, const DecayRule& rule, double decay) {
  Group decaying{decay, {}};
  Group spared{0, {}};
  for (size_t i = 0; i < parameters.size(); ++i) {
    (rule.Decays(parameters[i]) ? decaying : spared).members.push_back(i);
  }
  return {decaying, spared};
}

// Kernels walk parameter and gradient side by side, in memory order.
at::Tensor LaidOutAs(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (gradient.strides() == parameter.strides()) return gradient;
  return at::empty_like(parameter).copy_(gradient);
}

Status CheckParameters(const NamedTensors& parameters) {
  for (const NamedTensor& parameter : parameters) {
    if (!IsDense(parameter.tensor) || !parameter.tensor.is_floating_point()) {
      return Error{Code::kInvalid, "the optimizer cannot change parameter " + parameter.name +
                                       ": it is not one dense piece of floating-point numbers"};
    }
  }
  return Ok();
}

Error OutOfRange(const std::string& name, double value, const std::string& range) {
  return {Code::kInvalid, name + " is " + NumberText(value) + ", but must be " + range};
}

class AdamW : public Optimizer {
 public:
  AdamW(NamedTensors parameters, const AdamWOptions& options)
      : parameters_(std::move(parameters)), options_(options),
        groups_(GroupsOf(parameters_, options.decay, options.weight_decay)) {
    for (const NamedTensor& parameter : parameters_) {
      const at::Device device = parameter.tensor.device();
      steps_.push_back(at::zeros({}, at::TensorOptions(at::kFloat).device(device)));
      means_.push_back(at::zeros_like(parameter.tensor.detach()));
      squares_.push_back(at::zeros_like(parameter.tensor.detach()));
      state_.push_back({parameter.name + ".step", steps_.back()});
      state_.push_back({parameter.name + ".exp_avg", means_.back()});
      state_.push_back({parameter.name + ".exp_avg_sq", squares_.back()});
    }
  }

  Status Step(double learning_rate) override {
    return CatchTorch("AdamW", [&] {
      const at::NoGradGuard no_grad;
      for (const Group& group : groups_) {
        const Lists lists = ListsOf(group);
        if (lists.parameters.empty()) continue;
        // The kernel does not count steps: at step 0 it would divide by zero and make everything
        // NaN.
        at::_foreach_add_(lists.steps, 1);
        at::_fused_adamw_(lists.parameters, lists.gradients, lists.first, lists.second, {},
                          lists.steps, learning_rate, options_.beta1, options_.beta2,
                          group.weight_decay, options_.eps, false, false);
      }
    });
  }

  const NamedTensors& state() const override { return state_; }

  std::string DecayText() const override { return options_.decay.Text(); }
  std::string Text() const override {
    return "adamw beta1=" + NumberText(options_.beta1) + " beta2=" + NumberText(options_.beta2) +
           " eps=" + NumberText(options_.eps) +
           " weight_decay=" + NumberText(options_.weight_decay);
  }

 private:
  Lists ListsOf(const Group& group) const {
    Lists lists;
    for (const size_t i : group.members) {
      const at::Tensor& parameter = parameters_[i].tensor;
      if (!parameter.grad().defined()) continue;
      lists.parameters.push_back(parameter);
      lists.gradients.push_back(LaidOutAs(parameter, parameter.grad()));
      lists.first.push_back(means_[i]);
      lists.second.push_back(squares_[i]);
      lists.steps.push_back(steps_[i]);
    }
    return lists;
  }

  const NamedTensors parameters_;
  const AdamWOptions options_;
  const std::vector<Group> groups_;
  Tensors steps_, means_, squares_;
  NamedTensors state_;
};

class Sgd : public Optimizer {
 public:
  Sgd(NamedTensors parameters, const SgdOptions& options)
      : parameters_(std::move(parameters)), options_(options),
        groups_(GroupsOf(parameters_, options.decay, options.weight_decay)) {
    if (options_.momentum == 0) return;
    for (const NamedTensor& parameter : parameters_) {
      buffers_.push_back(at::zeros_like(parameter.tensor.detach()));
      state_.push_back({parameter.name + ".momentum_buffer", buffers_.back()});
    }
  }

  Status Step(double learning_rate) override {
    return CatchTorch("SGD", [&] {
      const at::NoGradGuard no_grad;
      for (const Group& group : groups_) {
        const Lists lists = ListsOf(group);
        if (lists.parameters.empty()) continue;
        // Buffers begin as zeros, so the first step needs no special case.
        at::_fused_sgd_(lists.parameters, lists.gradients, lists.first, group.weight_decay,
                        options_.momentum, learning_rate, /*dampening=*/0, options_.nesterov,
                        /*maximize=*/false, /*is_first_step=*/false);
      }
    });
  }

  const NamedTensors& state() const override { return state_; }

  std::string DecayText() const override { return options_.decay.Text(); }
  std::string Text() const override {
    return "sgd momentum=" + NumberText(options_.momentum) +
           " nesterov=" + (options_.nesterov ? "true" : "false") +
           " weight_decay=" + NumberText(options_.weight_decay);
  }

 private:
  Lists ListsOf(const Group& group) const {
    Lists lists;
    for (const size_t i : group.members) {
      const at::Tensor& parameter = parameters_[i].tensor;
      if (!parameter.grad().defined()) continue;
      lists.parameters.push_back(parameter);
      lists.gradients.push_back(LaidOutAs(parameter, parameter.grad()));
      if (!buffers_.empty()) lists.first.push_back(buffers_[i]);
    }
    return lists;
  }

  const NamedTensors parameters_;
  const SgdOptions options_;
  const std::vector<Group> groups_;
  Tensors buffers_;
  NamedTensors state_;
};

}  // namespace

bool DecayRule::Decays(const NamedTensor& parameter) const {
  if (spare_vectors && parameter.tensor.dim() < 2) return false;
  for (const std::string& pattern : spare_names) {
    if (GlobMatches(pattern, parameter.name)) return false;
  }
  return true;
}

std::string DecayRule::Text() const {
  const std::string text = spare_vectors ? "matrices" : "all";
  return spare_names.empty() ? text : text + " but " + JoinList(spare_names, ",");
}

Result<std::unique_ptr<Optimizer>> MakeAdamW(NamedTensors parameters,
                                             const AdamWOptions& options) {
  const std::pair<const char*, double> betas[] = {{"beta1", options.beta1},
                                                   {"beta2", options.beta2}};
  for (const auto& [name, beta] : betas) {
    if (!(beta >= 0 && beta < 1)) return OutOfRange(name, beta, "at least 0 and below 1");
  }
  if (!(options.eps > 0)) return OutOfRange("eps", options.eps, "above 0");
  if (!(options.weight_decay >= 0)) {
    return OutOfRange("weight_decay", options.weight_decay, "at least 0");
  }
  KEEL_TRY(CheckParameters(parameters));
  return CatchTorch("making AdamW", [&]() -> std::unique_ptr<Optimizer> {
    return std::make_unique<AdamW>(std::move(parameters), options);
  });
}

Result<std::unique_ptr<Optimizer>> MakeSgd(NamedTensors parameters, const SgdOptions& options) {
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    return OutOfRange("momentum", options.momentum, "at least 0 and below 1");
  }
  if (!(options.weight_decay >= 0)) {
    return OutOfRange("weight_decay", options.weight_decay, "at least 0");
  }
  if (options.nesterov && options.momentum == 0) {
    return Error{Code::kInvalid, "nesterov needs a momentum above 0"};
  }
  KEEL_TRY(CheckParameters(parameters));
  return CatchTorch("making SGD", [&]() -> std::unique_ptr<Optimizer> {
    return std::make_unique<Sgd>(std::move(parameters), options);
  });
}

}  // namespace keel
