// Nice values, which Linux has for each thread, and a new thread inherits.
#include "elastic/process/politeness.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "elastic/process/proc_file.h"
#include "elastic/process/process_table.h"

namespace keel {
namespace {

// It weighs a twentieth of what 0 weighs.
constexpr int kNiceStep = 13;
constexpr int kNiceMax = 19;
// A thread that is not raised yet may start another one meanwhile.
constexpr int kPassesMax = 5;

bool SetNice(pid_t thread, int nice) {
  return setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice) == 0;
}

// Returns how many threads were polite and are not any more.
int RaiseThreads(pid_t process, int polite_from) {
  int raised = 0;
  for (const pid_t thread : ThreadsOf(process)) {
    errno = 0;
    const int nice = getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
    if (errno != 0 || nice < polite_from) continue;
    if (SetNice(thread, nice - kNiceStep)) {
      ++raised;
    } else if (errno != ESRCH) {   // it may have ended
      LogWarn("stays-polite", {{"pid", process}, {"reason", std::strerror(errno)}});
      return 0;
    }
  }
  return raised;
}

}  // namespace

bool CanEndPoliteness() {
  bool can = false;
  std::thread([&can] {
    const int own = getpriority(PRIO_PROCESS, 0);
    can = own + kNiceStep <= kNiceMax && SetNice(0, own + kNiceStep) && SetNice(0, own);
  }).join();
  return can;
}

void BecomePolite() {
  (void)SetNice(0, std::min(getpriority(PRIO_PROCESS, 0) + kNiceStep, kNiceMax));
}

void EndPoliteness(pid_t leader) {
  const int polite_from = getpriority(PRIO_PROCESS, 0) + kNiceStep;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    const Result<std::vector<ProcessInfo>> all = AllProcesses();
    if (!all.ok()) {
      return LogWarn("stays-polite", {{"pid", leader}, {"reason", all.error().message}});
    }
    int raised = 0;
    for (const ProcessInfo& process : *all) {
      if (process.group != leader || process.ended) continue;
      raised += RaiseThreads(process.pid, polite_from);
    }
    if (raised == 0) return;
  }
}

}  // namespace keel
