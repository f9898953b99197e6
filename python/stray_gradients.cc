// Throws from within the backward, so that its traceback names the line of the script, and before
// anything is added: the engine may be at work on the gradients.
#include "python/stray_gradients.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <stdexcept>

namespace keel {
namespace {

class Guard final : public torch::autograd::FunctionPreHook {
 public:
  explicit Guard(const std::atomic<bool>& forbidden) : forbidden_(forbidden) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    if (!forbidden_) return gradients;
    throw std::runtime_error(
        "a backward other than job.backward() has reached a parameter of the model within the "
        "loop, where its gradients would be lost; add its loss to the one that "
        "job.backward(loss) gets, or ask for them with torch.autograd.grad()");
  }

 private:
  const std::atomic<bool>& forbidden_;
};

}  // namespace

StrayGradients::StrayGradients(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& parameter : parameters) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
    TORCH_CHECK(accumulators_.back(), "a parameter that requires no gradient");
  }
  for (const AutogradNode& accumulator : accumulators_) {
    auto guard = std::make_unique<Guard>(forbidden_);
    guards_.push_back(guard.get());
    accumulator->add_pre_hook(std::move(guard));
  }
}

StrayGradients::~StrayGradients() {
  for (size_t i = 0; i < guards_.size(); ++i) {
    std::erase_if(accumulators_[i]->pre_hooks(),
                  [this, i](const auto& hook) { return hook.get() == guards_[i]; });
  }
}

}  // namespace keel
