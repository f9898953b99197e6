// Transfer: copies a list of tensors from the members that have it to those that need it.
// Promises   after success all members hold the same bytes. The sources share the work. A member
//            on a source's host reads the bytes out of that source's memory, if it can. The others
//            pass on to each other what they got, so that no link carries much more than one copy.
//            If shapes or types differ between members, all get an error.
// Does not   check digests: the caller does. After an error the tensors of the members in need are
//            undefined.
// Threads    one at a time per group; every member calls it.
// Errors     those of the group (aborted then); kInvalid: lists differ, or nobody has the state.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"

namespace keel {

class EpochGroup;

// `progress`, if given, is called after each piece: bytes done and in all, of this member.
using TransferProgress = std::function<void(uint64_t bytes, uint64_t bytes_all)>;

// `has_it`: by rank, the same on all members.
Status Transfer(EpochGroup& group, const std::vector<at::Tensor>& tensors,
                const std::vector<bool>& has_it, const TransferProgress& progress = {});

}  // namespace keel
