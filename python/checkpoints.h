// Checkpoints for Python: a state that was verified whole, as names and tensors, and the reverse.
// Threads    any; a state is read by threads of its own.
// Errors     those of ckpt/; kInvalid: a type that the other side has not.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/tensors.h"

namespace keel {

// `path`: as for OpenCheckpoint(). Those that match one of these patterns, each of which must
// match some, or all; and those of the names `if_there` that there are. Of a safetensors file,
// which ends so, nothing is verified but its header.
Result<NamedTensors> ReadState(const std::string& path, const std::vector<std::string>& only,
                               const std::vector<std::string>& if_there);

// As a safetensors file, which appears when it is whole.
Status WriteState(const NamedTensors& state, const std::string& path, bool replace);

}  // namespace keel
