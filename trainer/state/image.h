// StateImage: the state's tensors as a checkpoint sees them: named, typed, row by row, in host
// memory.
// Promises   what a checkpoint holds does not depend on where tensors lie, or in which order their
//            memory is: tensors on a GPU, or not contiguous, go through a copy.
// Does not   read or write files.
// Threads    one at a time for one state; the spans may be read by any.
// Errors     kInvalid: types that checkpoints cannot hold; what copying from a device throws.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ckpt/layout.h"
#include "trainer/state/registry.h"

namespace keel {

// Before the names of a model's tensors in a checkpoint.
inline constexpr std::string_view kModelPrefix = "model.";
inline constexpr std::string_view kOptimizerPrefix = "optimizer.";
inline constexpr std::string_view kKeptPrefix = "kept.";   // of what a program keeps beside it
// All tensors of the model, under the names that a checkpoint gives them.
NamedTensors AsSaved(const ModelTensors& tensors);

Result<std::vector<TensorSpec>> SpecsOf(const NamedTensors& tensors);

// The bytes of some tensors, to be read.
class CpuBytes {
 public:
  enum class Take {
    kNothing,   // not needed
    kAlias,     // the tensor's own memory if possible: it must not change meanwhile
    kCopy,      // a copy of what it holds now
  };
  static Result<CpuBytes> Of(const NamedTensors& tensors,
                              const std::function<Take(size_t index)>& how);
  const std::vector<std::span<const std::byte>>& spans() const { return spans_; }

 private:
  std::vector<at::Tensor> kept_;
  std::vector<std::span<const std::byte>> spans_;
};

// Memory to restore tensors into; Finish() puts what went through a copy in its place.
class HostRoom {
 public:
  static Result<HostRoom> For(const NamedTensors& tensors);
  std::span<std::byte> At(size_t index) const;
  Status Finish() const;

 private:
  std::vector<at::Tensor> targets_;
  std::vector<at::Tensor> rooms_;
};

}  // namespace keel
