// WalkElements: the picked elements of a tensor, verified, one after the other.
// Promises   holds one frame in memory; decodes it once, unless a step back returns to it.
// Errors     those of TensorReader, and of `use`, which ends the walk. Threads: one at a time.
#pragma once

#include <functional>

#include "ckpt/tensor_reader.h"
#include "tools/keel/slice.h"

namespace keel {

// `elements` lie one behind the other: some of a run, in its order.
using UseElements = std::function<Status(std::span<const std::byte> elements)>;

// `slice` was parsed for this tensor's shape.
Status WalkElements(const Checkpoint& checkpoint, size_t tensor, const Slice& slice,
                    Progress* progress, const UseElements& use);

}  // namespace keel
