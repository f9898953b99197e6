// SignalSet: signals as the kernel takes them.
// Threads    pure.
#pragma once

#include <signal.h>

#include <vector>

namespace keel {

inline sigset_t SignalSet(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace keel
