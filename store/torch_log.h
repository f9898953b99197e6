// RouteTorchLog: turns what LibTorch writes to stderr into events of our log.
// Promises   each of its messages is one event "torch" with the place in its sources and its first
//            line; everything else that is written to std::cerr goes where it went before.
// Does not   catch what is written to file descriptor 2 directly, or a LibTorch built with glog.
// Threads    call it once, before other threads write to std::cerr.
#pragma once

namespace keel {

void RouteTorchLog();

}  // namespace keel
