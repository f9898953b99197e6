// Resume: what a job begins with: the newest checkpoint that can be used, in the directory or
// its mirror, another one that the user
// names, weights from elsewhere, or what its program built.
// Promises   the live state is touched only after every byte of the checkpoint, as it lies on the
//            disk, was verified (but see IsReadOnce()). What it unpacks to is verified on its way
//            into the state; if that fails, nobody goes on with the state before another
//            checkpoint fills it. Each one that is passed over is named with the reason. A
//            checkpoint must be of the same model, lanes, batch, seed, dataset and numerics as the
//            job: all differences are listed.
//            Options that differ without changing the bits are logged. A damaged checkpoint is put
//            aside, so that its step can be saved again. A bucket that does not return the newest
//            one in time is not asked for those before it. While a place is silent, it ticks for as
//            long as a disk may be (trainer/save/watch.h). Once the job has checkpoints of its own,
//            what it once began from elsewhere may be gone.
// Does not   tell the other members (trainer/loop/meet.h). Repair anything.
// Threads    one; verifying starts threads of its own.
// Errors     kInvalid: another job's checkpoint, or one that may not be passed over; those of
//            ckpt/. After any error, except one while restoring, the state is as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "trainer/numerics/run_config.h"
#include "trainer/save/resume_ahead.h"
#include "trainer/state/train_state.h"

namespace keel {

struct ResumeConfig {
  std::string root = {};           // where the job saves; empty: nowhere
  std::string mirror = {};         // where that is copied to; empty: nowhere
  bool resume = true;              // false: refuse what is there rather than go on with it
  std::string resume_from = {};    // "DIR", "ROOT", "ROOT@1200"; for where `root` holds nothing
  std::string init_from = {};      // weights only: a checkpoint, or a .safetensors file
  bool strict = false;             // refuse rather than pass over a damaged one
  bool allow_inexact = false;      // take one of other numerics
  std::string fingerprint = {};    // ours
  RunConfig config = {};           // ours; changes are logged once the checkpoint fits
  // The name of a job that has begun already and lost all its workers. It goes on from what it
  // saved itself, even if the command said to begin anew or from elsewhere.
  std::string begun_job = {};
};

struct ResumeOutcome {
  bool resumed = false;   // else it begins with step 0
  std::string from;       // the directory or file; empty: what the program built
  // Newer steps in the directory, on a disk, which it did not return. They stay where they are.
  std::vector<uint64_t> unread = {};
};

using ResumeTick = std::function<void()>;

// `ahead`: the reading that began before all had met; it is over when this returns.
Result<ResumeOutcome> Resume(TrainState& state, Files& files, const ResumeConfig& config,
                             const ResumeTick& tick, ResumeAhead* ahead = nullptr);

}  // namespace keel
