// State: all that a worker must hold to go on exactly: named tensors (parameters, buffers,
// optimizer) and named numbers (step, cursor, seed, loss scale, trail ...), in one ordered list
// that a save, a restore and a transfer to a newcomer read and write.
// Promises   the list is complete before the first step and the same on every worker of a job.
//            Tensors are the live ones: reading sees, writing changes what trains. Numbers are read
//            and written through the pointers or functions given. Digest() depends on every bit.
// Does not   own what it lists; order writing against training: its caller does.
// Threads    one at a time.
// Errors     kInvalid, naming all that is wrong: a name given twice, a tensor without dense memory,
//            numbers that are missing, unknown or of another kind.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "ckpt/description.h"

namespace keel {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

// The tensors of a model, named as PyTorch names them ("layer1.weight"), in its order. A tensor
// that hangs in two places (tied weights) is listed once, under its first name.
struct ModelTensors {
  NamedTensors parameters;  // those that want a gradient; frozen ones are among the constants
  NamedTensors buffers;     // BatchNorm's statistics and the like
  NamedTensors frozen;
};
ModelTensors TensorsOf(const torch::nn::Module& model);

std::vector<at::Tensor> JustTensors(const NamedTensors& named);

// The tensor's memory as one flat tensor, in the order in which it lies (a channels-last tensor is
// dense, but not contiguous): what a transfer sends and receives. Shares the memory.
at::Tensor FlatAlias(const at::Tensor& tensor);
// Whether FlatAlias() can do it: no gaps and no overlaps.
bool IsDense(const at::Tensor& tensor);

class StateRegistry {
 public:
  using Number = MetadataValue;
  struct NumberEntry {
    std::string name;
    std::function<Number()> read;
    std::function<Status(const Number&)> write;
  };

  // "model." + "layer1.weight"
  Status AddTensors(const std::string& prefix, const NamedTensors& tensors);
  Status AddNumber(NumberEntry entry);
  // Common ones. `number` must outlive this.
  Status AddNumber(const std::string& name, uint64_t* number);
  Status AddNumber(const std::string& name, double* number);
  Status AddNumber(const std::string& name, Digest* digest);  // as hex

  const NamedTensors& tensors() const { return tensors_; }
  std::vector<at::Tensor> FlatAliases() const;
  uint64_t bytes() const;

  // For a manifest.
  Metadata Numbers() const;
  // All of them or none is written, unless a writer refuses its value.
  Status SetNumbers(const Metadata& numbers);
  // The same as one line of JSON, for the report round and a transfer.
  std::string NumbersText() const;
  Status SetNumbersText(const std::string& text);

  // Of names, types, shapes and memory order, not of values: two workers whose layouts differ run
  // different programs.
  Digest LayoutDigest() const;
  // Of everything: layout, tensors' bits and numbers.
  Digest StateDigest() const;

 private:
  NamedTensors tensors_;
  std::vector<NumberEntry> numbers_;
};

}  // namespace keel
