// Child: a process that we started (elastic/process/spawn.h), until this object ends.
// Promises   signals reach that very process and its group, never one that took over the pid: the
//            ended child stays a zombie until this object is destroyed. The destructor kills the
//            whole process group (even a stopped one), reaps the child, and returns when the group
//            is gone (but see LeaveGroup()), or after 10 s if the kernel cannot end a process.
// Does not   keep track of processes that left the group by setsid() or setpgid()
//            (elastic/process/descendants.h).
// Threads    all methods from any thread; destroyed by one. The thread that spawned must not end
//            while the object lives: this is checked.
// Errors     kTimeout; kForeign: somebody else reaped the child (waitpid(-1), or SIGCHLD ignored).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "elastic/process/exit_status.h"

namespace keel {

class Child {
 public:
  // For Spawn(): takes over a fresh child of the calling thread, the leader of its own group.
  static Result<Child> Adopt(pid_t pid);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  // Whether some object stands for that child.
  static bool IsHeld(pid_t pid);

  pid_t pid() const { return pid_; }
  // Readable once the child has ended; for poll().
  const Fd& pidfd() const { return pidfd_; }

  // Signalling a child that has ended is no error.
  Status Signal(int signal) const;
  Status SignalGroup(int signal) const;
  // The destructor kills the rest of its group, too, but does not wait for that.
  void LeaveGroup() { leaves_group_ = true; }

  // Empty while it runs.
  Result<std::optional<ExitStatus>> TryWait() const;
  Result<ExitStatus> Wait(TimePoint deadline) const;

 private:
  Child(pid_t pid, Fd pidfd);

  pid_t pid_ = 0;   // 0: moved from
  Fd pidfd_;
  bool leaves_group_ = false;
  std::shared_ptr<std::atomic<int>> living_;   // number of children that the spawning thread has
};

}  // namespace keel
