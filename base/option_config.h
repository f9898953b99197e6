// Reads a config file, in the part of TOML that people use for options, and in INI files:
//   steps = 100                  # a comment
//   schedule = "cosine:total=9"  # text; quotes are needed only around '#', or blanks at the ends
//   [optimizer]
//   lr = 0.1                     # the option optimizer.lr
// Promises   finds every problem of the file, each with path:line; does not look at values. What
//            stands in '...' is taken as it is; in "..." \" \\ \n \r \t and \xHH have a meaning.
// Does not   read TOML's lists (write "a,b"), tables in a line, text of several lines, or dates.
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
