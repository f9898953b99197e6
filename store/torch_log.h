// RouteTorchLog: turns what LibTorch writes to stderr into events of our log.
// Promises   each of its messages is one event "torch" with the place in its sources and its first
//            line; everything else that is written to std::cerr goes where it went before.
// Does not   catch what is written to file descriptor 2 directly, or a LibTorch built with glog.
// Threads    call it once, before other threads write to std::cerr.
#pragma once

namespace keel {

void RouteTorchLog();

// LibTorch's exceptions hold no stack from now on. c10d logs each loss of a store with the stack,
// and to find the names in it takes a launcher longer than anything else that the loss makes it do.
void OmitTorchStacks();

}  // namespace keel
