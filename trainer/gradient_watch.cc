// A hook behind the node of each parameter that accumulates its gradients.
#include "trainer/gradient_watch.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace keel {

GradientWatch::GradientWatch(const std::vector<at::Tensor>& parameters,
                             const OnGradient& on_gradient) {
  using torch::autograd::variable_list;
  using torch::autograd::utils::LambdaPostHook;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Hook hook{torch::autograd::impl::grad_accumulator(parameters[i])};
    hook.key = hook.accumulator->add_post_hook(std::make_unique<LambdaPostHook>(
        [on_gradient, i](const variable_list& outputs, const variable_list& made) {
          on_gradient(i, made.front());
          return outputs;
        }));
    hooks_.push_back(std::move(hook));
  }
}

GradientWatch::~GradientWatch() {
  for (const Hook& hook : hooks_) hook.accumulator->del_post_hook(hook.key);
}

}  // namespace keel
