// OneCheckpoint: a checkpoint and the live state: is it of this job, is it sound, and into the
// tensors with it.
// Promises   what a checkpoint is of (model, lanes, batch, seed, dataset, numerics) must be what
//            the job is of: all differences are listed. Only FillTensors() and TakeNumbers() change
//            anything.
// Does not   choose among checkpoints (trainer/save/resume.h).
// Threads    one; verifying and filling make their own.
// Errors     kInvalid: another job's; kCorrupt, kIo: those of ckpt/; kCancelled.
#pragma once

#include <string>

#include "ckpt/checkpoint.h"
#include "ckpt/shard_writer.h"
#include "trainer/state/train_state.h"

namespace keel {

// What a checkpoint's fingerprint and ours say differently. Those of `never` cannot be allowed.
struct FingerprintCheck {
  std::string never;     // model, lanes, batch, seed, dataset; empty: the same
  // All else that bits depend on; empty: the same. An option that only one of them knows is told
  // by CompareConfigs().
  std::string inexact;
};
Result<FingerprintCheck> CompareFingerprints(const std::string& ours, const std::string& theirs);

// Of a checkpoint's metadata; empty where it says no such thing.
std::string TextIn(const Metadata& metadata, const std::string& name);

// Whether the state can go on from it, and on which numerics: true where the same bits will follow,
// false where they will not and that is allowed.
Result<bool> CheckSameJob(TrainState& state, const Checkpoint& checkpoint,
                          const std::string& fingerprint, bool allow_inexact);

// Every byte as it lies on the disk.
Status VerifyStored(const Checkpoint& checkpoint, Progress* progress);

// Verifies what it unpacks to. From here on the tensors are what they were no more.
Status FillTensors(TrainState& state, const Checkpoint& checkpoint, Progress* progress);

// What is no tensor; then the state is the checkpoint's.
Status TakeNumbers(TrainState& state, const Checkpoint& checkpoint, bool exact);

}  // namespace keel
