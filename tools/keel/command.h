// Command: one subcommand of `keel`: what it is given, what it does, what it says.
// Promises   a command prints nothing by itself (`cat` alone streams, through World::print): it
//            returns text for people and JSON for programs, and main() prints one of them.
// Errors     those of its work; main() turns their code into an exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_completion.h"
#include "base/options.h"
#include "tools/keel/paint.h"

namespace keel {

struct World {
  Files& files;
  Clock& clock;
  Paint paint;                 // of what goes to stdout
  bool shows_progress = false;  // stderr is a terminal
  std::function<Status(std::string_view)> print;  // to stdout; kPeerLost: no reader
  bool prints_to_terminal = false;                // stdout is one
  // Lets time pass; kPeerLost: nobody reads stdout any more. Null: the clock's SleepFor() does.
  std::function<Status(Duration)> rest = nullptr;
};

struct Outcome {
  Json json;
  std::string text;
  int exit_code = 0;  // 0, kExitNo, or kExitFailed where a part of it failed
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line, for `keel --help`
  size_t arguments_least;    // that are no options; main() counts them
  size_t arguments_most;
  OptionTable (*table)();
  Result<Outcome> (*run)(const World& world, const Options& options);
  // What the options alone tell to be a mistake of the command line; null: nothing.
  Status (*check)(const Options& options) = nullptr;
};

// The answer is no: checkpoints differ, one is damaged. What `keel COMMAND --help` lists.
inline constexpr int kExitNo = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitFailed = 3;

// Of the whole program, for people.
inline constexpr std::string_view kAbout =
    "Looks after checkpoints, training data and jobs, and says whether a machine is fit to train.";
inline constexpr std::string_view kHowToName =
    "A checkpoint is named by its own directory, by the directory that holds several (then the\n"
    "newest complete one is meant), or by DIR@latest or DIR@STEP.";

// All of them, in the order of `keel --help`.
const std::vector<Command>& Commands();

// The same for completion and man pages.
std::vector<CompletedCommand> CompletedCommands();

// A table with what all commands have: --json, how positionals are named, the exit codes.
// `positionals`: empty where it takes none. `no`: what exit code 1 means; empty where the command
// never gives it.
OptionTable CommandTable(const std::string& name, const std::string& summary,
                         const std::string& positionals, const std::string& no);

}  // namespace keel
