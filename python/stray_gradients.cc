// Throws from within the backward, so that its traceback names the line of the script.
#include "python/stray_gradients.h"

#include <stdexcept>

namespace keel {

StrayGradients::StrayGradients(const std::vector<at::Tensor>& parameters)
    : watch_(parameters, [this](size_t, const at::Tensor&) {
        if (!forbidden_) return;
        throw std::runtime_error(
            "a backward other than job.backward() has reached a parameter of the model within the "
            "loop, where its gradients would be lost; add its loss to the one that "
            "job.backward(loss) gets, or ask for them with torch.autograd.grad()");
      }) {}

}  // namespace keel
