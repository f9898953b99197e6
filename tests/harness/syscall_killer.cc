// ptrace: every thread stops at the entry and at the exit of every system call.
#include "tests/harness/syscall_killer.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

namespace keel {
namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;  // by PTRACE_O_TRACESYSGOOD

[[noreturn]] void BecomeTraced(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 && ::raise(SIGSTOP) == 0) {
    ::execv(words[0], words.data());
  }
  ::_exit(127);
}

class Tracer {
 public:
  Tracer(pid_t process, int kill_at) : process_(process), kill_at_(kill_at) {}

  TracedEnd Run() {
    for (;;) {
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) return {ExitStatus::Exited(127), calls_};
      if (WIFSTOPPED(status)) {
        Continue(thread, OnStop(thread, WSTOPSIG(status), status >> 16));
      } else if (thread == process_) {
        const ExitStatus end = WIFSIGNALED(status) ? ExitStatus::Killed(WTERMSIG(status))
                                                   : ExitStatus::Exited(WEXITSTATUS(status));
        return {end, calls_};
      }
    }
  }

 private:
  // The signal that the thread goes on with.
  int OnStop(pid_t thread, int signal, int event) {
    const bool is_new = seen_.insert(thread).second;
    if (signal == kSyscallStop) {
      if (!inside_.erase(thread)) OnEntry(thread);
      return 0;
    }
    if (event != 0 || (is_new && signal == SIGSTOP)) return 0;  // ptrace's own
    return signal;
  }

  void OnEntry(pid_t thread) {
    inside_.insert(thread);
    if (++calls_ == kill_at_) ::kill(process_, SIGKILL);
  }

  // Fails only for a thread that was killed meanwhile, whose end is waited for.
  static void Continue(pid_t thread, int signal) {
    (void)::ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
  }

  const pid_t process_;
  const int kill_at_;
  int calls_ = 0;
  std::set<pid_t> seen_;
  std::set<pid_t> inside_;  // of a system call
};

}  // namespace

Result<TracedEnd> RunKilledAtSyscall(const std::vector<std::string>& argv, int call) {
  const pid_t process = ::fork();
  if (process < 0) return Error{Code::kForeign, std::string("fork: ") + std::strerror(errno)};
  if (process == 0) BecomeTraced(argv);
  int status = 0;
  if (::waitpid(process, &status, __WALL) != process || !WIFSTOPPED(status)) {
    return Error{Code::kForeign, "ptrace is forbidden here"};
  }
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                            PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL;
  if (::ptrace(PTRACE_SETOPTIONS, process, nullptr, kOptions) != 0 ||
      ::ptrace(PTRACE_SYSCALL, process, nullptr, 0) != 0) {
    const std::string why = std::strerror(errno);
    ::kill(process, SIGKILL);
    ::waitpid(process, &status, __WALL);
    return Error{Code::kForeign, "ptrace: " + why};
  }
  return Tracer(process, call).Run();
}

}  // namespace keel
