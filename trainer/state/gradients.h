// What is asked of, and done to, complete gradients before the optimizer takes them.
// Promises   GlobalNorm() adds in an order that depends on nothing but the tensors' sizes: the same
//            bits for any number of threads and any CPU; in double, so that it overflows for no
//            float. It is finite exactly when all gradients are.
// Threads    one thread at a time per list of tensors.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace keel {

// Of all elements of all tensors together. Tensors are dense, of any floating type, on one device.
double GlobalNorm(const std::vector<at::Tensor>& gradients);

void ScaleInPlace(const std::vector<at::Tensor>& gradients, double factor);

// The factor that brings a norm down to `max_norm` (1 where it is no larger), as
// torch.nn.utils.clip_grad_norm_ has it.
double ClipFactor(double norm, double max_norm);

}  // namespace keel
