// Which threads step back, as the system sees it.
#include "base/thread_priority.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <thread>

namespace keel {
namespace {

struct Seen {
  int policy = -1;
  int nice = 0;
};
Seen See() { return {sched_getscheduler(0), getpriority(PRIO_PROCESS, 0)}; }

Seen SeenAfter(void (*step_back)()) {
  Seen seen;
  std::thread([&] {
    step_back();
    std::thread([&] { seen = See(); }).join();   // what it starts is no more urgent than itself
  }).join();
  return seen;
}

TEST(ThreadPriority, WhoMustNotPreemptKeepsItsShare) {
  const Seen before = See();
  const Seen after = SeenAfter(DoNotPreempt);
  EXPECT_EQ(after.policy, before.policy == SCHED_OTHER ? SCHED_BATCH : before.policy);
  EXPECT_EQ(after.nice, before.nice);
  EXPECT_EQ(See().policy, before.policy) << "the others stay as they are";
}

TEST(ThreadPriority, OnlyThreadsStartedMeanwhileDoNotPreempt) {
  const auto of_a_new_one = [] {
    int policy = -1;
    std::thread([&] { policy = sched_getscheduler(0); }).join();
    return policy;
  };
  const int before = sched_getscheduler(0);
  {
    const NotPreempting meanwhile;
    EXPECT_EQ(of_a_new_one(), before == SCHED_OTHER ? SCHED_BATCH : before);
  }
  EXPECT_EQ(See().policy, before);
  EXPECT_EQ(of_a_new_one(), before);
}

TEST(ThreadPriority, APolicyThatSomebodyChoseStays) {
  std::thread([] {
    const sched_param none{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    {
      const NotPreempting meanwhile;
      EXPECT_EQ(See().policy, SCHED_IDLE);
    }
    EXPECT_EQ(See().policy, SCHED_IDLE);
  }).join();
}

TEST(ThreadPriority, WhoLetsOthersFirstHasLess) {
  const Seen before = See();
  const Seen after = SeenAfter(LetOthersFirst);
  EXPECT_EQ(after.nice, before.nice + 10 < 19 ? before.nice + 10 : 19);
  EXPECT_EQ(See().nice, before.nice) << "the others stay as they are";
}

}  // namespace
}  // namespace keel
