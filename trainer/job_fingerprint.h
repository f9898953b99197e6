// The fingerprint of a job: all that must be the same on every worker. One that differs is refused
// at the door, and a checkpoint of another one is not taken.
// Promises   equal texts: workers compute the same bits, on the same samples, for as many steps.
// Threads    one at a time, once numerics are pinned and the device is open.
// Errors     those of HostFingerprint() and DeviceName().
#pragma once

#include <string>

#include "base/result.h"
#include "trainer/numerics/run_config.h"
#include "trainer/state/train_state.h"

namespace keel {

// "tree", "allreduce"
const char* ReduceName(Reduce reduce);

// `run`: the values of all options; those of the program's own count as they shape the result.
Result<std::string> FingerprintOf(TrainState& state, const RunConfig& run);

}  // namespace keel
