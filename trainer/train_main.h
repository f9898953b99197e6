// TrainMain: main() of a training program: options, numerics, supervisor, training, last line.
// Promises   the program's own function is called once, with every generator seeded from --seed,
//            so a model built in it is the same on every worker. The last line of a program that
//            finished, from the first rank: "final step=N trail=HEX digest=HEX"; a program that
//            went on from a checkpoint first prints "resumed step=N trail=HEX digest=HEX
//            from=DIR". If stdout does not take all that was printed (base/print_out.h), stderr
//            has the last line and the reason, and the exit code is not 0. Alone, SIGTERM, SIGINT
//            and SIGUSR1 stop it after the step under way; this works from before LibTorch is
//            initialised on.
// Does not   return before the groups are torn down. Exit codes: 0 finished, or under a supervisor
//            stopped as asked; alone 75 stopped with nothing lost, 77 stopped but not saved; 78
//            refused by what is in the checkpoint directory, or finished but not able to say so; 1
//            failed, or refused by the job; 2 the options make no sense.
// Threads    call it first in main().
#pragma once

#include <functional>
#include <string>

#include "base/option_table.h"
#include "base/options.h"
#include "trainer/train_config.h"
#include "trainer/train_program.h"

namespace keel {

struct TrainMainSpec {
  std::string name;          // of the program: "minimal_train"
  std::string about;         // one sentence for --help
  TrainConfig defaults = {};
  // Adds options of the program's own, beside those of TrainConfig. They shape what is computed:
  // workers that differ in one do not train together, and a job goes on only with the same values;
  // except for those that are Incidental().
  std::function<void(OptionTable& table)> add_options = {};
  std::function<Result<TrainProgram>(const TrainConfig& config, const Options& options)> make;
  // What options of the program's own may ask for instead of training, such as text from a
  // checkpoint. It runs with the numerics of training and seeded generators. Signals end it like
  // any program.
  struct Instead {
    std::function<bool(const Options& options)> wanted = {};
    std::function<Status(const TrainConfig& config, const Options& options)> run = {};
  };
  Instead instead = {};
};

int TrainMain(int argc, char** argv, const TrainMainSpec& spec);

}  // namespace keel
