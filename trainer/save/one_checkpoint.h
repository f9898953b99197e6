// OneCheckpoint: one checkpoint beside the live state: is it of this job, is it sound, and how its
// tensors get into the state.
// Promises   a checkpoint must be of the same model, lanes, batch, seed, dataset and numerics as
//            the job: all differences are listed. Only FillTensors() and TakeNumbers() change
//            anything.
// Does not   choose among checkpoints (trainer/save/resume.h).
// Threads    one; verifying and filling start threads of their own.
// Errors     kInvalid: another job's; kCorrupt, kIo: those of ckpt/; kCancelled.
#pragma once

#include <string>

#include "ckpt/checkpoint.h"
#include "ckpt/shard_writer.h"
#include "trainer/save/stated_job.h"
#include "trainer/state/train_state.h"

namespace keel {

// Whether the state can go on from it: true if the same bits will follow, false if they will not
// and that is allowed; else an error.
Result<bool> CheckSameJob(TrainState& state, const Checkpoint& checkpoint,
                          const std::string& fingerprint, bool allow_inexact);

// Verifies every byte as it lies on the disk.
Status VerifyStored(const Checkpoint& checkpoint, Progress* progress);

// Whether it is read once, while it is unpacked, which verifies all of it as well: in a bucket,
// whose bytes come over a network. One that is damaged then costs the former state, so nobody may
// begin with that afterwards.
bool IsReadOnce(Files& files, const Checkpoint& checkpoint);

// Unpacks into the state's tensors and verifies the result. Their former contents are lost, even
// after an error.
Status FillTensors(TrainState& state, const Checkpoint& checkpoint, Progress* progress);

// Takes all that is no tensor; then the state is the checkpoint's.
Status TakeNumbers(TrainState& state, const Checkpoint& checkpoint, bool exact);

}  // namespace keel
