// The tensors of a model, with the names that PyTorch gives them, and their memory.
// Promises   the same program lists the same names in the same order on every worker.
// Threads    one at a time.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace keel {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

// The tensors of a model, named as PyTorch names them ("layer1.weight"), in its order. A tensor
// that appears in two places (tied weights) is listed once, under its first name.
struct ModelTensors {
  NamedTensors parameters;  // those that require a gradient
  NamedTensors buffers;     // BatchNorm's statistics and the like
  NamedTensors frozen;
  std::vector<std::string> derived = {};  // buffers that weights of others need not have: the model
                                          // makes them itself, and state_dict() leaves them out
};
ModelTensors TensorsOf(const torch::nn::Module& model);

// A model as training sees it, whatever it is made of: names and tensors, the same on every worker.
struct ModelFace {
  ModelTensors tensors = {};   // each of them once
  // Puts the model into evaluation mode, and gives what puts all of it back into the mode that it
  // was in, which must not throw. Empty: the model has no modes.
  std::function<std::function<void()>()> evaluate = {};
};
ModelFace FaceOf(std::shared_ptr<torch::nn::Module> model);

std::vector<at::Tensor> JustTensors(const NamedTensors& named);

// The tensor's memory as one flat tensor, in the order in which it lies (a channels-last tensor is
// dense, but not contiguous): what a transfer sends and receives. Shares the memory.
at::Tensor FlatAlias(const at::Tensor& tensor);
// Whether FlatAlias() can do it: no gaps and no overlaps.
bool IsDense(const at::Tensor& tensor);

}  // namespace keel
