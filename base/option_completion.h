// What a shell needs to complete a program's command line, made from its OptionTables.
// Promises   completes options (with --no- for flags), the words of a choice, and files or
//            directories where a placeholder has the word FILE, DIR or CKPT in it; the program's
//            commands for COMMAND; files for other arguments, nothing for other values. In zsh,
//            with each one's help. No help text, whatever it holds, breaks the script.
// Does not   complete aliases or shortened names; know the values that a program would have to be
//            asked for. Threads: any; pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/option_table.h"

namespace keel {

// One subcommand: `table` is that of "program name ...".
struct CompletedCommand {
  std::string name;
  std::string summary;
  OptionTable table;
};

// Of a program without commands; its name is the table's.
std::string BashCompletion(const OptionTable& table);
std::string ZshCompletion(const OptionTable& table);

// Of a program whose first argument is one of these commands.
std::string BashCompletion(const std::string& program,
                           const std::vector<CompletedCommand>& commands);
std::string ZshCompletion(const std::string& program,
                          const std::vector<CompletedCommand>& commands);

}  // namespace keel
