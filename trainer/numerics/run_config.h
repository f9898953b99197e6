// RunConfig: the values of all options that a training program runs with, for its fingerprint, its
// checkpoints and the runs that go on from them.
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
// What is saved of it: values by name.
using SavedConfig = std::map<std::string, std::string>;

// All settings except those that only the command line may give. Those from `own_from` on are the
// program's own: they shape what it computes, unless they are incidental. (The trainer's
// fingerprint has its own words for what the trainer's options shape.)
RunConfig RunConfigOf(const Options& options, size_t own_from);
SavedConfig SavedOf(const RunConfig& config);
// The one text of a value, however it was written.
std::string ConfigValue(const OptionValue& value);

// Adds a word for each field that shapes the result: "--model.heads=4". If these are too long they
// become one digest of them all, since fingerprints that hosts exchange are limited in length.
void AddOptions(const RunConfig& config, Fingerprint* fingerprint);

// What a run changes when it goes on where another one stopped.
struct ConfigChanges {
  struct Change {
    std::string option, was, now, source;
    bool operator==(const Change&) const = default;
  };
  std::vector<Change> changed;
  // Options that shape the result but were not saved: nobody knows what they were.
  std::vector<std::string> unknown;
};
ConfigChanges CompareConfigs(const SavedConfig& was, const RunConfig& now);

}  // namespace keel
