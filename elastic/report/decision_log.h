// Logs what the coordinator decides, each decision with its reason.
// Threads    any.
#pragma once

#include "elastic/decisions/membership.h"

namespace keel {

void LogDecision(const Decision& decision, TimePoint now);

}  // namespace keel
