// TrainOptions: the options that every training program has, whatever it is written in, and what
// they set up.
// Promises   options of the program's own stand behind them, and count as they shape what is
//            computed (saved_config.h).
// Does not   read a command line (base/options.h) or say how the program is called.
// Threads    any. Errors: kInvalid, naming the option.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/option_table.h"
#include "base/options.h"
#include "base/result.h"
#include "trainer/train_config.h"
#include "trainer/train_run.h"

namespace keel {

struct TrainOptions {
  OptionTable table;
  size_t own_from = 0;   // index of the first option of the program's own
};
TrainOptions MakeTrainOptions(const std::string& name, const std::string& about,
                              const TrainConfig& defaults,
                              const std::function<void(OptionTable& table)>& add_own);

// Without the environment of a launcher.
Result<TrainRunOptions> ReadTrainOptions(const Options& options, const TrainOptions& declared,
                                         const TrainConfig& defaults);

}  // namespace keel
