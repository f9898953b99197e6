// Rigged bits: linked into a test's program, it lets one worker compute wrongly, as a bad machine
// would.
// KEEL_RIGGED_BITS has one rule: RANK STEP HOW WHAT WHERE
//   RANK     LOCAL_RANK of the process as it was started
//   STEP     steps made before the one in which it goes wrong
//   HOW      once, or always: from that step on
//   WHAT     gradient, loss, buffer, state (of the optimizer), or sum (of all workers' gradients,
//            where this one adds): one bit of it is flipped
//   WHERE    a number that draws the tensor and the bit; of a step's sums it is the first or second
// Promises   who is struck tells it first: "rigged WHAT at STEP pid N".
// Threads    the training thread, that of its backward, and that in which sums are made.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/train_program.h"

namespace keel {

// `steps_made`: asked in each lane. Call it last of all that wraps the program's loss.
void RigBits(TrainProgram& program, const std::function<uint64_t()>& steps_made);

}  // namespace keel
