// RunWithin(): runs a program that may hang or talk without end, and takes what it says.
// Promises   returns at the deadline at the latest, or 10 s later if the kernel cannot end the
//            program; nothing of its process group is left then.
// Does not   give it an input, or a terminal.
// Threads    any; the program ends before the call does.
// Errors     those of Spawn() (elastic/process/spawn.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/process/exit_status.h"

namespace keel {

struct LimitedRun {
  std::optional<ExitStatus> status = {};  // none: it was ended, by the deadline or for its talking
  bool said_too_much = false;
  std::string out = {};
  std::string err = {};
};

// `argv[0]`: a path. `bytes_most`: of each of its two outputs.
Result<LimitedRun> RunWithin(const std::vector<std::string>& argv, TimePoint deadline,
                             size_t bytes_most);

}  // namespace keel
