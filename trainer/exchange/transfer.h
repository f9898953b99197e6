// Transfer: a list of tensors from the members that have it to those that need it.
// Promises   when it succeeded, everybody holds the same bytes. The sources share the work. Who
//            needs it reads it out of a source's memory where that is on the same host and can be
//            read; the others pass on to each other what they got, so that no link carries much
//            more than one copy. Members whose lists differ in shapes or types all get an error.
// Does not   check digests: the caller does. After an error the tensors of those who needed them
//            are undefined.
// Threads    one at a time per group; every member calls it.
// Errors     those of the group (aborted then); kInvalid: lists that differ, nobody has the state.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"

namespace keel {

class EpochGroup;

// `progress`, if any, is told after each piece: bytes done and in all, of this member.
using TransferProgress = std::function<void(uint64_t bytes, uint64_t bytes_all)>;

// `has_it`: by rank, the same on all members.
Status Transfer(EpochGroup& group, const std::vector<at::Tensor>& tensors,
                const std::vector<bool>& has_it, const TransferProgress& progress = {});

}  // namespace keel
