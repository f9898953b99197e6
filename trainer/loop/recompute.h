// Recompute: computes the lane of an evidence file once more, on this machine, and tells whose
// results it comes to.
// Does not   train: of the state only the model and the numbers are those of the evidence
//            afterwards.
// Threads    the training thread.
// Errors     those of ReadEvidence(); kInvalid: the program is not the job's, or fails.
#pragma once

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "trainer/loop/recomputed.h"
#include "trainer/state/train_state.h"

namespace keel {

// `fingerprint`: of this program and machine.
Result<Recomputed> Recompute(TrainState& state, const std::string& fingerprint, Files& files,
                             const std::string& path);

}  // namespace keel
