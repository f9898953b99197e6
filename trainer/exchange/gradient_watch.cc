// Adds a hook behind the autograd node that accumulates each parameter's gradients.
#include "trainer/exchange/gradient_watch.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

namespace keel {

GradientWatch::GradientWatch(const std::vector<at::Tensor>& parameters,
                             const OnGradient& on_gradient) {
  using torch::autograd::variable_list;
  using torch::autograd::utils::LambdaPostHook;
  // All accumulators are taken before the first hook is set, since this is what may throw.
  for (const at::Tensor& parameter : parameters) {
    hooks_.push_back({torch::autograd::impl::grad_accumulator(parameter)});
    TORCH_CHECK(hooks_.back().accumulator, "a parameter that requires no gradient");
  }
  for (size_t i = 0; i < hooks_.size(); ++i) {
    hooks_[i].key = hooks_[i].accumulator->add_post_hook(std::make_unique<LambdaPostHook>(
        [on_gradient, i](const variable_list& outputs, const variable_list& made) {
          on_gradient(i, made.front());
          return outputs;
        }));
  }
}

GradientWatch::~GradientWatch() {
  for (const Hook& hook : hooks_) hook.accumulator->del_post_hook(hook.key);
}

}  // namespace keel
