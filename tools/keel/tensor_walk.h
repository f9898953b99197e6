// WalkTensor: all verified bytes of one tensor, in order, a piece at a time.
// Promises   holds one frame in memory; a piece holds whole elements.
// Errors     those of TensorReader and of `use`. Threads: one at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ckpt/tensor_reader.h"

namespace keel {

using UsePiece = std::function<Status(uint64_t offset, std::span<const std::byte> bytes)>;

Status WalkTensor(const Checkpoint& checkpoint, size_t tensor, Progress* progress,
                  const UsePiece& use);
// The same through a reader of the caller's, for many tensors in turn: small ones share frames.
Status WalkTensor(const Checkpoint& checkpoint, TensorReader* reader, size_t tensor,
                  Progress* progress, const UsePiece& use);

// Indices of tensors whose name matches one of the patterns; all, where there are no patterns.
// kInvalid: a pattern that matches none.
Result<std::vector<size_t>> MatchTensors(const Layout& layout,
                                         const std::vector<std::string>& patterns);

}  // namespace keel
