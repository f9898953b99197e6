// RunLogs: the options by which a training program is told how to log, and what they set up.
// Promises   what the program's own on_step and on_evaluation say still counts, after the log.
// Threads    one.
// Errors     none: a log that fails is told in the log.
#pragma once

#include "base/option_table.h"
#include "base/options.h"
#include "trainer/state/train_state.h"

namespace keel {

// --log-every, --log-jsonl, --tensorboard, --progress
void AddLogOptions(OptionTable& table);

// Lets `program` log as the options say. The log lives as long as the program does.
void LogRun(const Options& options, const TrainConfig& config, TrainProgram& program);

}  // namespace keel
