// What the launcher's exit status says; schedulers decide by it. The one place that has them.
// Threads    constants.
#pragma once

namespace keel {

inline constexpr int kExitFinished = 0;
inline constexpr int kExitFailed = 1;        // the program failed more often than allowed, a
                                             // value makes no sense, or the doctor found a failure
inline constexpr int kExitUsage = 2;         // the command line was not understood
inline constexpr int kExitStopped = 75;      // stopped on request and saved: start me again
inline constexpr int kExitQuorumLost = 76;   // too few hosts, or the store is gone
inline constexpr int kExitUnsaved = 77;      // stopped, but not saved in time
inline constexpr int kExitRefused = 78;      // config, fingerprint, damaged checkpoint
inline constexpr int kExitShunned = 79;      // a launcher's: its machine is not to be trusted, and
                                             // the job goes on without it
inline constexpr int kExitDeviceLost = 79;   // a worker's alone: its GPU, or NCCL, is of no more
                                             // use to the process; another takes its place

}  // namespace keel
