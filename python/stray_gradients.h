// StrayGradients: notices a backward that the script runs beside job.backward(). Its gradients
// would be lost, or change what the engine is about to exchange.
// Promises   while they are forbidden, such a backward ends with an exception that says what to do,
//            as soon as it reaches a parameter of the model.
// Does not   notice torch.autograd.grad(), which leaves no gradient behind.
// Threads    one; the backward may be in any.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <vector>

#include "trainer/exchange/gradient_watch.h"

namespace keel {

class StrayGradients {
 public:
  explicit StrayGradients(const std::vector<at::Tensor>& parameters);

  void Forbid(bool forbidden) { forbidden_ = forbidden; }

 private:
  std::atomic<bool> forbidden_ = false;
  GradientWatch watch_;
};

}  // namespace keel
