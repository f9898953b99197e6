// Reads a config file in the form that Boost.Program_options knows:
//   steps = 100          # a comment
//   [optimizer]
//   lr = 0.1             # the option optimizer.lr
// Promises   finds every problem of the file, each with path:line; does not look at values.
// Does not   give quotes or backslashes a meaning; a '#' always begins a comment.
// Threads    any. For base/options.cc: others call ParseOptions().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/option_table.h"

namespace keel {

struct ConfigEntry {
  const Option* option;  // points into the table
  std::string text;
  int line;
};

struct ConfigFile {
  std::vector<ConfigEntry> entries;  // a list's entries append; others come once
  std::vector<std::string> problems;
};

ConfigFile ReadConfig(const OptionTable& table, const std::string& path, std::string_view text);

}  // namespace keel
