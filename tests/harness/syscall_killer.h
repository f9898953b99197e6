// Runs a program and kills it with SIGKILL in front of its n-th system call, whichever thread makes
// it: what a loss of the machine, or a kill -9, may look like.
// Promises   the call that it is killed at has not happened; all before it have.
// Does not   work under LeakSanitizer, which cannot be traced. The order of several threads' calls
//            is as they come.
// Threads    one at a time in a process, and no other children meanwhile.
// Errors     kForeign: tracing is forbidden here.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/process/exit_status.h"

namespace keel {

struct TracedEnd {
  ExitStatus status;
  int calls = 0;  // that were begun, from exec on
};

Result<TracedEnd> RunKilledAtSyscall(const std::vector<std::string>& argv, int call);

}  // namespace keel
