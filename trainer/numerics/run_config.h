// RunConfig: the values of all options that a training program runs with, as its fingerprint, its
// checkpoints and whoever goes on from them need them.
// Promises   a value has one text, however it was written, and it is one line of UTF-8.
// Does not   read or write checkpoints (trainer/saved_config.h).
// Threads    pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/options.h"
#include "trainer/numerics/fingerprint.h"

namespace keel {

struct ConfigField {
  std::string name;     // the option's: "model.width"
  std::string value;
  std::string source;   // "command line", "run.toml:3", "default"
  bool shapes_result = false;
};
using RunConfig = std::vector<ConfigField>;
// What is kept of it: values by name.
using SavedConfig = std::map<std::string, std::string>;

// All settings but those that only the command line may give. From the one at `own_from` on they
// are the program's own: these shape what it computes, unless they are incidental. (The trainer's
// fingerprint has its own words for what the trainer's options shape.)
RunConfig RunConfigOf(const Options& options, size_t own_from);
SavedConfig SavedOf(const RunConfig& config);
// The one text of a value.
std::string ConfigValue(const OptionValue& value);

// A word for each field that shapes the result: "--model.heads=4". Many long ones become a digest
// of them all, since hosts tell each other fingerprints of limited length.
void AddOptions(const RunConfig& config, Fingerprint* fingerprint);

// What a run changes that goes on where another one stopped.
struct ConfigChanges {
  struct Change {
    std::string option, was, now, source;
    bool operator==(const Change&) const = default;
  };
  std::vector<Change> changed;
  // Options that shape the result, and of which nothing was saved: nobody knows what they were.
  std::vector<std::string> unknown;
};
ConfigChanges CompareConfigs(const SavedConfig& was, const RunConfig& now);

}  // namespace keel
