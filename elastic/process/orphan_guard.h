// OrphanGuard: a small process beside ours that outlives even our SIGKILL, and then ends all that
// we have started, with its descendants.
// Promises   however we die, every process whose first environment holds the mark is killed, and
//            so is what it starts meanwhile. While we live, and once dismissed, the guard does
//            nothing. Its name and command line differ from ours: `pkill -f` with ours spares it.
// Does not   find a process that cleared its environment; keep our terminal, streams or files
//            open.
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
  // `mark`: an entry of the environment, "NAME=value", that nobody else has. Returns null in the
  // processes that are forked here: their work is then done, and main() must return.
  static Result<std::unique_ptr<OrphanGuard>> Start(const std::string& mark);
  // Dismisses it, and returns when it is gone.
  ~OrphanGuard();

 private:
  explicit OrphanGuard(Fd link) : link_(std::move(link)) {}

  const Fd link_;   // closed by our death, too
};

}  // namespace keel
