// Removal: how one checkpoint is taken apart beside others that save, remove and look there.
// Promises   a checkpoint goes manifest first, made durable, so that it is never half there and
//            still called complete. Nothing that a living save has made goes, whenever it began: a
//            lock file goes only while we hold it, the directory only when it is empty, and what
//            is removed otherwise was there before we saw that nobody was writing.
// Does not   touch files whose names are not ours: a directory with such a file stays, as an error.
// Threads    any, also several for one directory, in one process or in many.
// Errors     those of Files. After an error a part of the checkpoint may be gone.
#pragma once

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/catalog.h"

namespace keel {

enum class Removal {
  kRemoved,
  kVanished,      // somebody else removed it, or began to
  kBeingWritten,  // a save began in it
  kPinned,        // somebody pinned it
  kLink,          // its directory is a symbolic link (found by ckpt/retention.h)
  kChanged,       // it is in another state than it was, or of another attempt
};

// `judged`: the step as it was when its removal was decided. Where it is not so any more, it stays.
Result<Removal> RemoveCheckpoint(Files& files, const StepEntry& judged);

// Removes from a complete step what other attempts than its own left; gives their bytes. With
// `dry_run` it only counts them.
Result<uint64_t> SweepCheckpoint(Files& files, const StepEntry& judged, bool dry_run);

// The same for a step that is complete, if it is that; what cannot be removed waits for retention.
void SweepDeadAttempts(Files& files, const std::string& step_dir);

}  // namespace keel
