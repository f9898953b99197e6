// StrayGradients: notices a backward that the script runs beside job.backward(). Its gradients
// would be lost, or change what the engine is about to exchange.
// Promises   while they are forbidden, such a backward ends with an exception that says what to do,
//            before it adds anything to a gradient of the model.
// Does not   notice torch.autograd.grad(), which leaves no gradient behind.
// Threads    one; the backward may be in any. Construct and destroy it while none runs.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <vector>

#include "store/torch_shim.h"

namespace keel {

class StrayGradients {
 public:
  explicit StrayGradients(const std::vector<at::Tensor>& parameters);
  ~StrayGradients();
  StrayGradients(const StrayGradients&) = delete;
  StrayGradients& operator=(const StrayGradients&) = delete;

  void Forbid(bool forbidden) { forbidden_ = forbidden; }

 private:
  std::atomic<bool> forbidden_ = false;
  std::vector<AutogradNode> accumulators_;
  std::vector<const void*> guards_;   // of the accumulators; each owns its own
};

}  // namespace keel
