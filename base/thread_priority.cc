// Linux knows both by thread, and a new thread has those of the one that started it.
#include "base/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

namespace keel {
namespace {

// Weighs a tenth of what 0 weighs.
constexpr int kNiceStep = 10;
constexpr int kNiceMax = 19;

void SetOwnPolicy(int policy) {
  const sched_param none{};
  (void)sched_setscheduler(0, policy, &none);
}

}  // namespace

void DoNotPreempt() {
  if (sched_getscheduler(0) == SCHED_OTHER) SetOwnPolicy(SCHED_BATCH);
}

NotPreempting::NotPreempting() : before_(sched_getscheduler(0)) { DoNotPreempt(); }

NotPreempting::~NotPreempting() {
  if (before_ == SCHED_OTHER) SetOwnPolicy(SCHED_OTHER);
}

void LetOthersFirst() {
  DoNotPreempt();
  // The calling thread's: Linux takes 0 for a thread here, not for the process.
  const int nice = getpriority(PRIO_PROCESS, 0);
  (void)setpriority(PRIO_PROCESS, 0, std::min(nice + kNiceStep, kNiceMax));
}

}  // namespace keel
