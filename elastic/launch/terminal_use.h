// Terminal use: what the launcher may do with the terminal that it shares with its workers.
// Promises   a status line (elastic/report/status_line.h) only if nobody else writes to its
//            terminal.
// Does not   change anything.
// Threads    any.
#pragma once

#include <string_view>

#include "elastic/launch/config.h"

namespace keel {

// Whether stderr is a terminal for people, can wipe a line, and is ours alone. `terminal`: the
// variable TERM.
bool WantsStatusLine(const LaunchConfig& config, std::string_view terminal);

// Whether teed lines share stderr's terminal with the log, with or without a status line.
bool NeedsOneWriter(const LaunchConfig& config);

}  // namespace keel
