// The processes of this machine as /proc shows them, and ways to hold on to one of them.
// Promises   OpenProcess() returns a handle of exactly the process that was listed, or none: a
//            process that has taken its pid since is never mistaken for it.
// Does not   see processes that /proc hides (hidepid) or that live in another pid namespace; give a
//            snapshot: processes come and go while it reads.
// Threads    any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace keel {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  bool ended = false;      // dead, and only waits to be reaped
  bool exiting = false;    // about to end by itself
  bool kernel = false;     // a thread of the kernel's
  uint64_t started = 0;    // clock ticks since boot; together with pid an identity
};

Result<std::vector<ProcessInfo>> AllProcesses();

// Children, their children, and so on; `root` itself is not among them.
std::vector<ProcessInfo> DescendantsOf(pid_t root, const std::vector<ProcessInfo>& all);

// True if it will end without help: it is exiting, or SIGKILL is on its way to it.
bool IsDying(const ProcessInfo& process);

// Its command line with spaces between the words; "[name]" if it has none (or not yet, inside
// exec), "" if it is gone.
std::string CommandLine(pid_t pid);

// The environment that it was started with, entries separated by NUL; "" if it is gone or not ours
// to see. Empty while it is inside exec(), between two programs: ask again.
std::optional<std::string> InitialEnvironment(pid_t pid);

// A pidfd, readable once the process has ended; not valid if it is gone.
Fd OpenProcess(const ProcessInfo& process);
// The same for a child that is not reaped yet, so its pid cannot be another's.
Result<Fd> OpenChild(pid_t pid);

// Sends it to the process behind a pidfd; a process that has ended already is no error.
Status SendSignal(const Fd& process, int signal);

// True once all have ended, false if the deadline came first.
bool WaitUntilEnded(const std::vector<Fd>& processes, TimePoint deadline);

}  // namespace keel
