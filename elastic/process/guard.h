// Guard: makes sure that no descendant of this process is left, also one that changed its session
// or whose parent is gone.
// Promises   after BecomeSubreaper(), orphans below us become our children instead of init's, so
//            that KillDescendants() finds all; when that returns without error there is none left.
// Does not   work against our own SIGKILL: then only direct children die (elastic/process/spawn.h).
// Threads    KillDescendants() reaps every child: call it when no Child object lives and no other
//            thread starts processes.
// Errors     kTimeout names who could not be ended; kForeign: /proc cannot be read.
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

// Kills and reaps until there are none; gives those that had to be killed, and not those that were
// dying already, for whatever cause.
Result<std::vector<KilledProcess>> KillDescendants(TimePoint deadline);

}  // namespace keel
