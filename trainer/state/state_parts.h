// StateParts: a state cut into parts that can be received at different steps: a parameter with what
// the optimizer keeps for it can go on by itself as soon as it is here, since the optimizer changes
// it from its own gradient alone.
// Promises   each tensor of the state is in `first` or in one of the parts; those that the program
//            keeps beside the model come last, when all parameters are there, each in a part of
//            its own. All workers of a job get the same parts in the same order.
// Does not   know whether the optimizer really treats each parameter by itself: who received a
//            state by parts compares it with others' before it counts.
// Threads    pure functions.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/tensors.h"

namespace keel {

struct StatePart {
  std::vector<at::Tensor> tensors;       // flat
  std::optional<size_t> parameter = {};  // its index
  uint64_t bytes() const;
};

struct StateParts {
  // What is needed before the first step: buffers, and what is small of what the program keeps.
  std::vector<at::Tensor> first;
  std::vector<StatePart> parts;
};

// `optimizer`: its state, by names that begin with a parameter's and a dot. Empty: some of it
// belongs to no parameter.
std::optional<StateParts> PartsOf(const ModelTensors& model, const NamedTensors& optimizer,
                                  const NamedTensors& kept);

}  // namespace keel
