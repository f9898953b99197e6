// What speaks for and against a host, for people and for programs.
// Threads    pure functions.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "elastic/protocol/blame.h"

namespace keel {

// Of all causes. A record's own `deaths` begin anew when its host registers anew, for what decides.
int64_t DeathCount(const HostBlame& blame);
// "2 exited with a code, 1 killed by a signal"; "none"
std::string DeathsText(const HostBlame& blame);
// A line of the summary, indented by two blanks; empty if there is nothing to tell. `health`: what
// the last health check said; empty: there was none.
std::string BlameText(const HostBlame& blame, const std::string& health);
Json BlameJson(const HostBlame& blame);

}  // namespace keel
