// Makes a training program's workers exchange over the NCCL module and the stand-in, as they would
// on a GPU, although their tensors are on the CPU.
#pragma once

namespace keel {

// Call it first in main().
void ExchangeOverTheStandIn();

}  // namespace keel
