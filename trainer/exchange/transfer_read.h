// TransferRead: copies a list of tensors out of another member's memory on the same host. That is
// one copy, made by the reader, where sending makes four and wakes both ends for every piece.
// Promises   it goes in rounds, after each of which both ends know that the other one is there. A
//            reader succeeds only once the source has said that it left its tensors alone until
//            all was read; what was read before an error is worthless.
// Does not   choose which member reads from which (trainer/exchange/transfer.cc).
// Threads    one at a time per group.
// Errors     those of the group, which is aborted then.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "trainer/group/tags.h"

namespace keel {

class EpochGroup;

// Tensors are contiguous, on the CPU, and of the same sizes at both ends. `progressed` gets the
// bytes of each round.
using RoundDone = std::function<void(uint64_t bytes)>;
Status ReadTensors(EpochGroup& group, int source, const std::vector<at::Tensor>& into, Tag tag,
                   const RoundDone& progressed);
Status LetRead(EpochGroup& group, const std::vector<int>& readers,
               const std::vector<at::Tensor>& from, Tag tag, const RoundDone& progressed);

}  // namespace keel
