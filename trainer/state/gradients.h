// What complete gradients are checked for, and what is done to them, before the optimizer takes
// them.
// Promises   GlobalNorm() adds in an order that depends on nothing but the tensors' sizes: the same
//            bits for any number of threads and any CPU; in double, so that it overflows for no
//            float. It is finite exactly when all gradients are.
// Threads    one thread at a time per list of tensors.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace keel {

// The norm of all elements of all tensors together. Tensors are dense, of any floating type, on one
// device.
double GlobalNorm(const std::vector<at::Tensor>& gradients);

void ScaleInPlace(const std::vector<at::Tensor>& gradients, double factor);

// The factor that brings a norm down to `max_norm` (1 if it is no larger), like
// torch.nn.utils.clip_grad_norm_.
double ClipFactor(double norm, double max_norm);

}  // namespace keel
