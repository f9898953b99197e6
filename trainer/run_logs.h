// RunLogs: the options that tell a training program how to log, and what they set up.
// Promises   the program's own on_step and on_evaluation still run, after the log.
// Threads    one.
// Errors     none: a log that fails says so in our own log.
#pragma once

#include "base/option_table.h"
#include "base/options.h"
#include "trainer/state/train_state.h"

namespace keel {

// --log-every, --log-jsonl, --tensorboard, --progress
void AddLogOptions(OptionTable& table);
// kInvalid: a place that they cannot be written to.
Status CheckLogOptions(const Options& options);

// Lets `program` log as the options say. The log lives as long as the program does.
void LogRun(const Options& options, const TrainConfig& config, TrainProgram& program);

}  // namespace keel
