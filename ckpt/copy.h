// CopyCheckpoint: a committed checkpoint once more, in another directory or bucket, byte by byte.
// Promises   each frame is verified before it is written, and what the copy says of itself is read
//            back before its manifest appears, which comes last: killed at any moment, there is a
//            whole copy or none. Nothing that is committed there is replaced (kExists). Ok says
//            that its shards were there after its manifest: where there are no locks, others may
//            remove them as old while this one stands still (kCorrupt).
// Does not   unpack anything, or copy a pin.
// Threads    one.
// Errors     kExists; kInvalid: `root` is a checkpoint itself, or has the name of one; kCancelled;
//            kCorrupt; those of base/files.h and base/objects.h.
#pragma once

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/checkpoint.h"
#include "ckpt/save.h"
#include "ckpt/shard_writer.h"

namespace keel {

// `root`: the directory of steps that it is copied into. `progress` counts stored bytes.
Result<CommitReport> CopyCheckpoint(Files& files, const Checkpoint& from, const std::string& root,
                                    Progress* progress);

}  // namespace keel
