// Reads a command line by the rules of Python's argparse, which torchrun's users know.
//   --name value, --name=value, -r value, -rvalue, -r=value, -ab for two flags; dashes and
//   underscores are the same; --no-name for flags; names may be cut while unmistakable; `--` ends
//   the options; a value beginning with a dash needs the '=', unless it is a number.
// Promises   finds every problem of the line, in words; does not look at values.
// Threads    any. For base/options.cc: others call ParseOptions().
#pragma once

#include <string>
#include <vector>

#include "base/option_table.h"

namespace keel {

struct GivenOption {
  const Option* option;  // points into the table
  std::string text;
};

struct CommandLine {
  std::vector<GivenOption> given;  // in the order of the line
  std::vector<std::string> positionals;
  std::vector<std::string> problems;
  bool help = false;
};

// `arguments` lack the program's own name.
CommandLine ReadCommandLine(const OptionTable& table, const std::vector<std::string>& arguments);

}  // namespace keel
