// The guard waits for signals one by one, so that it needs no handler and no thread.
#include "tests/harness/guarded.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "elastic/process/descendants.h"
#include "elastic/process/exit_status.h"

namespace keel {
namespace {

constexpr Duration kCleanUpLimit = std::chrono::seconds(20);
constexpr std::array kForwarded = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

sigset_t GuardSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : kForwarded) sigaddset(&signals, signal);
  return signals;
}

// Reaps whoever has ended, orphans too; the wait status of `child` if it was among them.
std::optional<int> ReapAll(pid_t child) {
  std::optional<int> found;
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return found;
    if (pid == child) found = status;
  }
}

int AwaitChild(pid_t child, const sigset_t& signals) {
  for (;;) {
    if (const auto status = ReapAll(child)) return *status;
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    // What the terminal sends goes to our whole group, so the child has it already.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(child, signal);
  }
}

int ExitCodeOf(int wait_status) {
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
  const int signal = WTERMSIG(wait_status);
  std::fprintf(stderr, "The test process was %s.\n", ExitStatus::Killed(signal).Text().c_str());
  return 128 + signal;
}

// True when nobody was left.
bool CleanUp() {
  const auto killed = KillDescendants(RealClock().Monotonic() + kCleanUpLimit);
  if (!killed.ok()) {
    std::fprintf(stderr, "Cleaning up after the test: %s\n", killed.error().message.c_str());
    return false;
  }
  for (const KilledProcess& process : *killed) {
    std::fprintf(stderr, "The test left a process behind (now killed): %d %s\n", process.pid,
                 process.command.c_str());
  }
  return killed->empty();
}

int Guard(pid_t child, const sigset_t& signals) {
  const int code = ExitCodeOf(AwaitChild(child, signals));
  const bool clean = CleanUp();
  return code == 0 && !clean ? 1 : code;
}

}  // namespace

int RunGuarded(const std::function<int()>& body) {
  const Status subreaper = BecomeSubreaper();
  KEEL_CHECK(subreaper.ok(), subreaper.error().message);
  const sigset_t signals = GuardSignals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t guard = getpid();
  std::fflush(nullptr);
  const pid_t child = fork();
  KEEL_CHECK(child >= 0, "fork: " << std::strerror(errno));
  if (child > 0) return Guard(child, signals);
  const int tied = prctl(PR_SET_PDEATHSIG, SIGKILL);
  KEEL_CHECK(tied == 0, "prctl: " << std::strerror(errno));
  if (getppid() != guard) return 1;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return body();
}

}  // namespace keel
