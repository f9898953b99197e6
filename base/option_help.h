// The text of --help, made from an OptionTable.
// Promises   no line is wider than asked for, except where a single word is; every option that has
//            a name of its own, with its default and its environment variables.
// Threads    any.
#pragma once

#include <string>

#include "base/option_table.h"

namespace keel {

// What it says of one option: help, default, variables. In one line.
std::string OptionHelp(const Option& option);

std::string HelpText(const OptionTable& table, int width);

// The width of the terminal that stdout is, at least 40 and at most 120; else 80.
int TerminalWidth();

}  // namespace keel
