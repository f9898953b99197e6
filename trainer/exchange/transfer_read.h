// TransferRead: a list of tensors out of another member's memory, where both are on one host: one
// copy, made by who needs it, where sending makes four and wakes both ends for every piece.
// Promises   in rounds, after each of which both ends know that the other one is there. Who read
//            succeeds only once the other end has said that it left its tensors alone until all was
//            read; what was read before an error means nothing.
// Does not   choose who reads from whom (trainer/exchange/transfer.cc).
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

// Contiguous tensors on the CPU, of the same sizes at both ends. `progressed`: bytes of a round.
using RoundDone = std::function<void(uint64_t bytes)>;
Status ReadTensors(EpochGroup& group, int source, const std::vector<at::Tensor>& into, Tag tag,
                   const RoundDone& progressed);
Status LetRead(EpochGroup& group, const std::vector<int>& readers,
               const std::vector<at::Tensor>& from, Tag tag, const RoundDone& progressed);

}  // namespace keel
