// Kills, waits, reaps, looks again: a killed process's children become ours only when it is gone.
#include "elastic/process/descendants.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "elastic/process/process_table.h"

namespace keel {
namespace {

// Reaps all children that have ended. True if no child is left, and so no descendant: as their
// subreaper we would be the parent of the topmost one.
bool ReapEnded() {
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid == 0) return false;
    if (pid < 0 && errno != EINTR) return true;
  }
}

struct Held {
  KilledProcess who;
  Fd handle;
};

Status AwaitEnd(const std::vector<Held>& round, TimePoint deadline) {
  std::string names;
  for (const Held& held : round) {
    if (WaitReadable(held.handle, deadline)) continue;
    names += (names.empty() ? "" : ", ") + std::to_string(held.who.pid) + " (" +
             held.who.command + ")";
  }
  if (names.empty()) return Ok();
  return Error{Code::kTimeout, "SIGKILL did not end in time: " + names};
}

}  // namespace

Status BecomeSubreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0) return Ok();
  return Error{Code::kForeign, std::string("becoming the parent of orphans: ") +
                                   std::strerror(errno)};
}

Result<std::vector<KilledProcess>> KillDescendants(TimePoint deadline) {
  std::vector<KilledProcess> killed;
  while (!ReapEnded()) {
    KEEL_TRY_ASSIGN(const std::vector<ProcessInfo> all, AllProcesses());
    std::vector<Held> dying;
    std::vector<Held> alive;
    for (const ProcessInfo& process : DescendantsOf(getpid(), all)) {
      Fd handle = process.ended ? Fd() : OpenProcess(process);
      if (!handle.valid()) continue;
      Held held{{process.pid, CommandLine(process.pid)}, std::move(handle)};
      (IsDying(process) ? dying : alive).push_back(std::move(held));
    }
    // Dying processes come first: their death may end others that are tied to them.
    if (dying.empty()) {
      for (const Held& held : alive) {
        // A process that we may not signal shows up later, as one that does not end.
        (void)SendSignal(held.handle, SIGKILL);
        killed.push_back(held.who);
      }
      dying = std::move(alive);
    }
    KEEL_TRY(AwaitEnd(dying, deadline));
    if (dying.empty() && RealClock().Monotonic() >= deadline) {
      return Error{Code::kTimeout, "children have ended, but cannot be reaped (are they traced?)"};
    }
  }
  return killed;
}

}  // namespace keel
