// Waits without reaping, so that pid and group stay ours; and ends a whole group.
#include "elastic/process/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "elastic/process/process_table.h"

namespace keel {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(10);

// Counts the children of one thread. The kernel sends PR_SET_PDEATHSIG when the thread that forked
// ends, which would kill them unexpectedly; the main thread ends with the process.
class ChildrenOfThread {
 public:
  ~ChildrenOfThread() {
    KEEL_CHECK(getpid() == gettid() || *living == 0,
               "a thread ends while " << *living << " children that it started live, and the "
               "kernel would kill them with it; call Spawn() in a thread that outlives them");
  }

  std::shared_ptr<std::atomic<int>> living = std::make_shared<std::atomic<int>>(0);
};

std::shared_ptr<std::atomic<int>> LivingOfThisThread() {
  thread_local ChildrenOfThread children;
  return children.living;
}

// All children that objects stand for, of all threads.
class HeldChildren {
 public:
  void Add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.insert(pid);
  }
  void Remove(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.erase(pid);
  }
  bool Has(pid_t pid) {
    const std::lock_guard lock(mutex_);
    return pids_.contains(pid);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<pid_t> pids_;
};

// Never destroyed: some child may be held until the process ends.
HeldChildren& HeldNow() {
  static HeldChildren& held = *new HeldChildren;
  return held;
}

ExitStatus StatusOf(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return ExitStatus::Exited(info.si_status);
  ExitStatus status = ExitStatus::Killed(info.si_status);
  status.core_dumped = info.si_code == CLD_DUMPED;
  return status;
}

void Reap(pid_t pid) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0 && errno == EINTR) {
  }
}

// Waits for the rest of a group whose leader is reaped; they have had their SIGKILL.
void AwaitGroupGone(pid_t group, TimePoint deadline) {
  if (kill(-group, 0) != 0 && errno == ESRCH) return;
  const Result<std::vector<ProcessInfo>> all = AllProcesses();
  if (!all.ok()) return;
  std::vector<Fd> members;
  for (const ProcessInfo& process : *all) {
    if (process.group != group || process.ended) continue;
    if (Fd member = OpenProcess(process); member.valid()) members.push_back(std::move(member));
  }
  WaitUntilEnded(members, deadline);
}

}  // namespace

Result<Child> Child::Adopt(pid_t pid) {
  KEEL_TRY_ASSIGN(Fd pidfd, OpenChild(pid));
  return Child(pid, std::move(pidfd));
}

Child::Child(pid_t pid, Fd pidfd)
    : pid_(pid), pidfd_(std::move(pidfd)), living_(LivingOfThisThread()) {
  ++*living_;
  HeldNow().Add(pid_);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      pidfd_(std::move(other.pidfd_)),
      leaves_group_(other.leaves_group_),
      living_(std::move(other.living_)) {}

Child::~Child() {
  if (pid_ == 0) return;
  const TimePoint deadline = RealClock().Monotonic() + kKillLimit;
  (void)SignalGroup(SIGKILL);
  if (WaitReadable(pidfd_, deadline)) {
    Reap(pid_);
    if (!leaves_group_) AwaitGroupGone(pid_, deadline);
  }
  HeldNow().Remove(pid_);
  --*living_;
}

bool Child::IsHeld(pid_t pid) { return HeldNow().Has(pid); }

Status Child::Signal(int signal) const { return SendSignal(pidfd_, signal); }

Status Child::SignalGroup(int signal) const {
  if (kill(-pid_, signal) == 0 || errno == ESRCH) return Ok();
  return Error{Code::kForeign, "sending " + SignalName(signal) + " to the process group " +
                                   std::to_string(pid_) + ": " + std::strerror(errno)};
}

Result<std::optional<ExitStatus>> Child::TryWait() const {
  siginfo_t info{};
  int result = -1;
  do {
    result = waitid(P_PIDFD, static_cast<id_t>(pidfd_.number()), &info,
                    WEXITED | WNOHANG | WNOWAIT);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return Error{Code::kForeign, "waiting for process " + std::to_string(pid_) + ": " +
                                     std::strerror(errno) + " (was it reaped by somebody else, or "
                                     "is SIGCHLD ignored?)"};
  }
  if (info.si_pid == 0) return std::optional<ExitStatus>();
  return std::optional<ExitStatus>(StatusOf(info));
}

Result<ExitStatus> Child::Wait(TimePoint deadline) const {
  if (!WaitReadable(pidfd_, deadline)) {
    return Error{Code::kTimeout, "process " + std::to_string(pid_) + " is still running"};
  }
  KEEL_TRY_ASSIGN(const std::optional<ExitStatus> status, TryWait());
  KEEL_CHECK(status.has_value(), "pid=" << pid_ << " has a readable pidfd, but did not end");
  return *status;
}

}  // namespace keel
