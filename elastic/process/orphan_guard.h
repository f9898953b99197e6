// OrphanGuard: a small process beside ours that outlives even our SIGKILL, and then ends all that
// we have started and what descends from it.
// Promises   however we die, every process whose first environment holds the mark is killed, and
//            what it starts meanwhile. While we live, and once dismissed, the guard does nothing.
//            It has another name and command line than we: `pkill -f` with ours spares it.
// Does not   find a process that cleared its environment; hold on to our terminal, streams or
//            files.
// Threads    Start() before the first thread exists: it forks.
// Errors     kForeign: no process could be made.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace keel {

class OrphanGuard {
 public:
  // `mark`: an entry of the environment, "NAME=value", that nobody else has. Nothing is given in
  // the processes that are made here: their work is done then, and main() is to return.
  static Result<std::unique_ptr<OrphanGuard>> Start(const std::string& mark);
  // Dismisses it, and returns when it is gone.
  ~OrphanGuard();

 private:
  explicit OrphanGuard(Fd link) : link_(std::move(link)) {}

  const Fd link_;   // closed by our death, too
};

}  // namespace keel
