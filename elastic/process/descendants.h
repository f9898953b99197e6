// Descendants: makes sure that none of this process's descendants is left, not even one that
// changed its session or whose parent is gone.
// Promises   after BecomeSubreaper(), orphans below us become our children instead of init's, so
//            KillDescendants() finds all of them; when that returns without error, none is left.
// Does not   work against our own SIGKILL: then only direct children die
//            (elastic/process/spawn.h).
// Threads    KillDescendants() reaps every child: call it when no Child object lives and no other
//            thread starts processes.
// Errors     kTimeout names the processes that could not be ended; kForeign: /proc cannot be read.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

Status BecomeSubreaper();

struct KilledProcess {
  pid_t pid = 0;
  std::string command;
};

// Kills and reaps until none are left. Returns those that had to be killed, but not those that were
// dying already.
Result<std::vector<KilledProcess>> KillDescendants(TimePoint deadline);

}  // namespace keel
