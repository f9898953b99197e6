// Option: one named, typed value that a program can be given, declared once.
//   Option::Integer("max-restarts", 0, "How often a worker is started again").Range(0, 1000)
//       .Env("KEEL_MAX_RESTARTS").Placeholder("N")
// Promises   what help, completion, checks and messages say about an option comes from here.
// Does not   say where a value came from (base/options.h).
// A malformed declaration (a default out of range, a bad name) is a bug of ours: KEEL_CHECK.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

enum class OptionType { kFlag, kInteger, kReal, kBytes, kDuration, kText, kChoice, kList };

// By type: bool, int64_t, double, uint64_t (bytes), Duration, std::string (text and choice), list;
// monostate where an optional option was not given.
using OptionValue = std::variant<std::monostate, bool, int64_t, double, uint64_t, Duration,
                                 std::string, std::vector<std::string>>;

struct Option {
  std::string name;  // lower case with dashes; with dots when it lies in a section of config files
  OptionType type = OptionType::kText;
  std::string help;
  // As it would be written on the command line; none: it has no value unless given.
  std::optional<std::string> default_text;
  bool required = false;
  bool command_line_only = false;
  bool incidental = false;
  char short_name = 0;
  std::string placeholder;
  std::string section;                   // heading in the help; set by OptionTable
  std::vector<std::string> environment;  // variables that give it, the first one set wins
  std::vector<std::string> aliases;      // further names, which help does not show
  std::vector<std::string> choices;
  // Ends included, in the type's own unit (durations: nanoseconds); reals use the other pair.
  std::optional<int64_t> least, most;
  std::optional<double> least_real, most_real;

  static Option Flag(std::string name, bool preset, std::string help);
  static Option Integer(std::string name, int64_t preset, std::string help);
  static Option Real(std::string name, double preset, std::string help);
  // Defaults as they are written: "512KiB", "10s".
  static Option Bytes(std::string name, std::string preset, std::string help);
  static Option Time(std::string name, std::string preset, std::string help);
  static Option Text(std::string name, std::string preset, std::string help);
  static Option Choice(std::string name, std::vector<std::string> choices, std::string preset,
                       std::string help);
  // Values are split at commas; each occurrence appends.
  static Option List(std::string name, std::string preset, std::string help);

  Option& Range(int64_t least, int64_t most);  // kInteger, kBytes
  Option& AtLeast(int64_t least);
  Option& Range(Duration least, Duration most);  // kDuration
  Option& RealRange(double least, double most);  // kReal
  Option& Env(std::string variable);
  Option& Alias(std::string other_name);
  Option& Short(char letter);
  Option& Placeholder(std::string word);
  // No default: has no value unless given, or must be given.
  Option& Optional();
  Option& Required();
  // Neither environment nor config file may give it.
  Option& CommandLineOnly();
  // What the program computes is the same whatever it is (where files lie, how often something is
  // told): the trainer lets it differ between workers, and when a job goes on.
  Option& Incidental();
};

// "a whole number from 1 to 1000", "one of: auto, cpu, cuda": completes "must be ...".
std::string AllowedText(const Option& option);

// The typed value of what was given in one place. Of several texts the last counts; a list takes
// them all. The error reads on from a value: "'abc' must be a whole number".
Result<OptionValue> ReadOption(const Option& option, const std::vector<std::string>& texts);

// The same text for the same value, however it was written; reads back as that value.
std::string ValueText(const OptionValue& value);

// "rdzv_id" and "RDZV-ID" are not the same; "rdzv_id" and "rdzv-id" are: dashes for underscores.
std::string CanonicalName(std::string_view name);

}  // namespace keel
