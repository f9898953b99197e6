// Looks at all processes only where some child has ended.
#include "elastic/process/lost_children.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "elastic/process/child.h"
#include "elastic/process/process_table.h"

namespace keel {
namespace {

bool AnyHasEnded() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

}  // namespace

void LostChildren::Reap() {
  const auto before = std::exchange(seen_, {});
  if (!AnyHasEnded()) return;
  const Result<std::vector<ProcessInfo>> all = AllProcesses();
  if (!all.ok()) return;
  for (const ProcessInfo& process : *all) {
    if (!process.ended || process.parent != getpid() || Child::IsHeld(process.pid)) continue;
    const std::pair lost(process.pid, process.started);
    if (std::find(before.begin(), before.end(), lost) == before.end()) {
      seen_.push_back(lost);
      continue;
    }
    siginfo_t info{};
    (void)waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG);
  }
}

}  // namespace keel
