// PlayedScript: a program of callbacks, played as a script plays its own: by the tasks of a Driver.
// So whatever trains by callbacks trains by tasks, to the same bits.
// Threads    one: the script's.
// Errors     those of Driver, and of the program.
#pragma once

#include "base/result.h"
#include "trainer/driver.h"

namespace keel {

struct Play {
  bool engines_optimizer = false;   // the engine makes the steps, by the program's optimizer
  // Sees each task before it is done; an error is the script's own.
  std::function<Status(const ScriptTask& task)> watch = {};
};

// `program` has a module, and no backward of its own.
Result<TrainResult> PlayScript(TrainRun& run, TrainProgram program, const TrainOutput& output = {},
                               const Play& play = {});

}  // namespace keel
