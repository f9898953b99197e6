// Looks at where each worker's streams go.
#include "elastic/launch/terminal_use.h"

#include <unistd.h>

#include "elastic/process/console.h"
#include "elastic/workers/logs.h"

namespace keel {

bool WantsStatusLine(const LaunchConfig& config, std::string_view terminal) {
  if (config.log_format != LogFormat::kText || isatty(STDERR_FILENO) == 0) return false;
  if (terminal.empty() || terminal == "dumb") return false;
  const bool covers_stdout = IsOneTerminal(STDOUT_FILENO, STDERR_FILENO);
  for (int index = 0; index < config.workers_per_host; ++index) {
    const SeatLogs logs = PlanSeatLogs(config.logs, "logs", 0, index);
    if (logs.err.to == StreamPlan::To::kConsole) return false;
    if (logs.out.to == StreamPlan::To::kConsole && covers_stdout) return false;
  }
  return true;
}

bool NeedsOneWriter(const LaunchConfig& config) {
  if (isatty(STDERR_FILENO) == 0) return false;
  const bool covers_stdout = IsOneTerminal(STDOUT_FILENO, STDERR_FILENO);
  for (int index = 0; index < config.workers_per_host; ++index) {
    const SeatLogs logs = PlanSeatLogs(config.logs, "logs", 0, index);
    if (logs.err.shown || (logs.out.shown && covers_stdout)) return true;
  }
  return false;
}

}  // namespace keel
