// A stand-in for NCCL and CUDA's runtime, for machines without a GPU: memory of the host for a
// GPU's, threads for streams, sockets for the wire. It is compiled against the real headers.
// Promises   as the real ones where it matters: non-blocking calls that take their time on threads
//            of NCCL's own; operations that wait for ever for a member that is gone, until they are
//            revoked or aborted; an abort that waits for what is in flight.
//            Misuse ends the process with words: a call beside another one of the same
//            communicator, a call of one that is gone, what NCCL says is invalid.
// Does not   stand for anything else of CUDA's: no memory of its own, no kernels.
// Threads    any.
#pragma once

#include <functional>
#include <string>

namespace keel::standin {

// Called at the beginning of each call of NCCL's, on the caller's thread. Null: none.
void OnEachCall(std::function<void(const std::string& call)> hook);
// Each abort from now on never comes back, until it is set to false.
void LetAbortsHang(bool hang);
// From now on each query of a stream gives this error of CUDA's (0: none).
void LoseTheGpu(int cuda_error);
// Communicators that were made and not yet ended.
int Communicators();

// Of a process that is told by its environment, for tests of whole jobs:
//   KEEL_STANDIN_KILL=N    it kills itself at one of N calls, at random
//   KEEL_STANDIN_HANG=N    one of N aborts hangs
//   KEEL_STANDIN_SLOW_US=N each call that takes its time takes up to so long

}  // namespace keel::standin
