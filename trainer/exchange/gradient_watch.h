// GradientWatch: reports each gradient as soon as autograd has put it into its parameter's grad().
// Promises   `on_gradient` is called in the thread of the backward. An exception from it ends the
//            backward. `made` is what this backward adds, undefined if that is nothing.
// Does not   report parameters that the loss does not reach, or call once it is gone.
// Threads    construct and destroy it while no backward runs.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "store/torch_shim.h"

namespace keel {

class GradientWatch {
 public:
  using OnGradient = std::function<void(size_t parameter, const at::Tensor& made)>;
  GradientWatch(const std::vector<at::Tensor>& parameters, const OnGradient& on_gradient);
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

 private:
  struct Hook {
    AutogradNode accumulator;
    uintptr_t key = 0;
  };
  std::vector<Hook> hooks_;
};

}  // namespace keel
