// The flag PF_EXITING and the exit code in /proc/PID/task/TID/stat: a thread gets both before the
// process's memory is freed.
#include "elastic/process/ending.h"

#include <sys/wait.h>

#include <sstream>
#include <string>

#include "elastic/process/proc_file.h"

namespace keel {
namespace {

// Of proc(5), counted from the first that follows the name.
constexpr size_t kFlags = 9 - 3, kExitCode = 52 - 3;
constexpr unsigned long kExiting = 0x4;   // PF_EXITING of the kernel's include/linux/sched.h

// What wait() will give, once the thread is being ended. `gone`: it is not there any more.
std::optional<int> EndingCode(pid_t pid, pid_t thread, bool* gone) {
  const std::optional<std::string> stat =
      ReadProcFile("/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/stat");
  *gone = !stat;
  if (!stat) return {};
  const size_t name_end = stat->rfind(')');   // the name may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream text(stat->substr(name_end + 1));
  std::string field;
  for (size_t at = 0; text >> field; ++at) {
    if (at == kFlags && !(std::stoul(field) & kExiting)) return {};   // most often
    if (at == kExitCode) return std::stoi(field);
  }
  return {};
}

}  // namespace

std::optional<ExitStatus> EndingOf(pid_t pid) {
  bool gone = false;
  const std::optional<int> code = EndingCode(pid, pid, &gone);
  if (!code) return {};
  for (const pid_t thread : ThreadsOf(pid)) {
    if (!EndingCode(pid, thread, &gone) && !gone) return {};
  }
  if (WIFSIGNALED(*code)) return ExitStatus::Killed(WTERMSIG(*code));
  return ExitStatus::Exited(WEXITSTATUS(*code));
}

}  // namespace keel
