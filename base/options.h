// Options: the values a program runs with, each from the first of: command line, environment,
// config file, default.
// Promises   names every problem of all three sources at once, each with where it lies; an unknown
//            name anywhere is one, and the answer offers the nearest. On the command line the last
//            of several counts; lists append there, and replace what a lower source says. An
//            environment variable that is set but empty counts as not set.
// Does not   look at values that a higher source overrides; print or exit: main() does, with
//            HelpText() (base/option_help.h), ConfigText() and error().
// Threads    const methods from any thread. Errors: kInvalid; kIo for the config file.
//   const Result<Options> options = ParseOptions(table, RealInputs(argc, argv));
//   if (!options.ok()) ...            // after --help nothing is an error
//   if (options->Flag("help")) ...
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/option_table.h"
#include "base/result.h"

namespace keel {

// The text of a config file of at most 1 MiB.
Result<std::string> ReadConfigFile(const std::string& path);

// What the world says; tests bring their own.
struct OptionInputs {
  std::vector<std::string> arguments;  // without the program's own name
  Environment environment;
  std::function<Result<std::string>(const std::string& path)> read_file = ReadConfigFile;
};
OptionInputs RealInputs(int argc, const char* const* argv);

struct OptionSource {
  // The higher beats the lower.
  enum class Kind { kDefault, kConfigFile, kEnvironment, kCommandLine };
  Kind kind = Kind::kDefault;
  std::string where;  // the variable, or path:line; of a default that was set later, by whom

  // "command line", "environment KEEL_STEPS", "run.conf:3", "default", "default of runs/one"
  std::string Text() const;
};

class Options {
 public:
  struct Setting {
    Option option;
    OptionValue value;
    std::string text;  // as it was written
    OptionSource source;
  };

  // Asking for a name that the table lacks, or as another type, is a bug of ours, and so is asking
  // for an optional one that Has() no value.
  bool Flag(std::string_view name) const;
  int64_t Integer(std::string_view name) const;
  double Real(std::string_view name) const;
  uint64_t Bytes(std::string_view name) const;
  Duration Time(std::string_view name) const;
  const std::string& Text(std::string_view name) const;  // also of a choice
  const std::vector<std::string>& List(std::string_view name) const;

  // A default that became known after parsing, as from what a job goes on from: `text` counts where
  // nobody gave a value; `where` says who knew. kInvalid: the option cannot have it.
  Status SetDefault(std::string_view name, const std::string& text, const std::string& where);

  bool Has(std::string_view name) const;
  const OptionSource& Source(std::string_view name) const;
  // In the table's order.
  const std::vector<Setting>& settings() const { return settings_; }
  // What was no option: the launcher's script and its arguments.
  const std::vector<std::string>& positionals() const { return positionals_; }

  // Every value and where it came from: "steps = 100  # run.conf:3". Reads back as a config file,
  // in which that file's own path is a comment.
  std::string ConfigText() const;

 private:
  friend class OptionParser;
  const Setting& Find(std::string_view name) const;

  std::vector<Setting> settings_;
  std::vector<std::string> positionals_;
  std::string config_option_;
};

Result<Options> ParseOptions(const OptionTable& table, const OptionInputs& inputs);
// Where a script has `defaults` of its own, as words of a command line: they become those of the
// table. `whose` they are is told with the values, and with mistakes.
Result<Options> ParseOptions(OptionTable& table, const OptionInputs& inputs,
                             const std::vector<std::string>& defaults, const std::string& whose);

}  // namespace keel
