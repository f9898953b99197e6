// Puts into words how a process ended.
#include "elastic/process/exit_status.h"

#include <cstring>

namespace keel {

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return "signal " + std::to_string(signal);
  return std::string("SIG") + name;
}

std::string ExitStatus::Text() const {
  if (kind == Kind::kExited) return "exited with " + std::to_string(number);
  const std::string text =
      "killed by signal " + std::to_string(number) + " (" + SignalName(number) + ")";
  return core_dumped ? text + ", core dumped" : text;
}

}  // namespace keel
