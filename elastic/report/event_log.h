// Logs what happens at a launcher. Events whose readers are elsewhere are not logged.
// Threads    any.
#pragma once

#include "elastic/report/launcher_event.h"

namespace keel {

void LogEvent(const LauncherEvent& event);

}  // namespace keel
