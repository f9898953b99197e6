// Nice values. Linux has one for each thread, which a new thread inherits; and, where it schedules
// by sessions (autogroups, outside of containers), one for each session, which alone counts beside
// other sessions. A worker has a session of its own.
#include "elastic/process/politeness.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

// It weighs a tenth of what 0 weighs.
constexpr int kNiceStep = 10;
constexpr int kNiceMax = 19;
// A thread that is not raised yet may start another one meanwhile.
constexpr int kPassesMax = 5;
// As text, for who may not allocate.
constexpr char kPoliteText[] = {'0' + kNiceStep / 10, '0' + kNiceStep % 10, '\0'};

bool SetNice(pid_t thread, int nice) {
  return setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice) == 0;
}

// False with errno; a kernel that does not schedule by sessions has no such file.
bool WriteTo(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  const bool done = write(fd, text, std::strlen(text)) > 0;
  const int error = errno;
  close(fd);
  errno = error;
  return done;
}

// False: not now.
bool RaiseSession(pid_t leader) {
  const std::string path = "/proc/" + std::to_string(leader) + "/autogroup";
  if (WriteTo(path.c_str(), "0") || errno == ESRCH) return true;   // it has ended
  if (errno == EAGAIN) return false;
  LogWarn("stays-polite", {{"pid", leader}, {"reason", std::strerror(errno)}});
  return true;
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
  (void)WriteTo("/proc/self/autogroup", kPoliteText);
}

// The session comes first: what its threads have counts among themselves only.
bool EndPoliteness(pid_t leader) {
  if (!RaiseSession(leader)) return false;
  const int polite_from = getpriority(PRIO_PROCESS, 0) + kNiceStep;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    const Result<std::vector<ProcessInfo>> all = AllProcesses();
    if (!all.ok()) {
      LogWarn("stays-polite", {{"pid", leader}, {"reason", all.error().message}});
      return true;
    }
    int raised = 0;
    for (const ProcessInfo& process : *all) {
      if (process.group != leader || process.ended) continue;
      raised += RaiseThreads(process.pid, polite_from);
    }
    if (raised == 0) break;
  }
  return true;
}

}  // namespace keel
