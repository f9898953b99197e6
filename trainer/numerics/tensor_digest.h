// DigestOfTensors: one digest over the bits of many tensors, to tell whether two workers hold the
// same.
// Promises   depends on every bit, on the order of the tensors, their types and their shapes;
//            tensors on a GPU and on the CPU with the same bits give the same digest.
// Does not   depend on how a tensor is laid out in memory: it is read as if contiguous.
// Threads    any.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "base/digest.h"

namespace keel {

Digest DigestOfTensors(const std::vector<at::Tensor>& tensors);

}  // namespace keel
