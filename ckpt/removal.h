// Removal: how one checkpoint is removed while others save, remove and look in the same directory.
// Promises   a checkpoint's manifest goes first, and durably, so that a checkpoint is never half
//            gone and still called complete. Nothing that a living save has made is removed,
//            whenever it began: a lock file only while we hold it, a shard only while we hold its
//            first lock and see once more that nothing is committed, the directory only when it is
//            empty, and all else was there before we saw that nobody was writing.
//            In a bucket, which has no locks, that is what is young (base/upload_age.h), and all
//            of a step without a manifest to which an upload goes on.
// Does not   touch files whose names are not ours: a directory with such a file stays, as an error.
// Threads    any, also several for one directory, in one process or in many.
// Errors     those of Files. After an error a part of the checkpoint may be gone.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/objects.h"
#include "base/result.h"
#include "ckpt/catalog.h"

namespace keel {

enum class Removal {
  kRemoved,
  kVanished,      // somebody else removed it, or began to
  kBeingWritten,  // a save began in it
  kPinned,        // somebody pinned it
  kLink,          // its directory is a symbolic link (found by ckpt/retention.h)
  kChanged,       // its state or attempt differs from the judged one
};

// `judged`: the step as it was when its removal was decided. If it has changed since, it stays.
Result<Removal> RemoveCheckpoint(Files& files, const StepEntry& judged);

// Removes from a complete step what attempts other than its own left, and returns their bytes. With
// `dry_run` it only counts them.
Result<uint64_t> SweepCheckpoint(Files& files, const StepEntry& judged, bool dry_run);

// In a bucket: the shards of steps of `root` whose upload has begun and is not finished. They are
// in no list of objects, and are billed. None on a disk.
Result<std::vector<UnfinishedObject>> UnfinishedShards(Files& files, const std::string& root);

// Gives up those that nobody finishes any more.
Status DiscardDeadUploads(Files& files, const std::string& root);

// SweepCheckpoint() for a step if it is complete; what cannot be removed is left to retention.
void SweepDeadAttempts(Files& files, const std::string& step_dir);

}  // namespace keel
