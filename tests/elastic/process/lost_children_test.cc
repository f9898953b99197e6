// What a subreaper inherits, with real processes.
#include "elastic/process/lost_children.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "elastic/process/descendants.h"
#include "elastic/process/process_table.h"
#include "elastic/process/spawn.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

auto CountLost() {
  const auto all = AllProcesses();
  EXPECT_OK(all);
  return std::count_if(all->begin(), all->end(), [](const ProcessInfo& process) {
    return process.ended && process.parent == getpid() && !Child::IsHeld(process.pid);
  });
}

TEST(LostChildren, AreReapedOnceTheyHaveBeenSeenBeforeAndNobodyHoldsThem) {
  EXPECT_OK(BecomeSubreaper());
  ChildSpec spec;
  spec.argv = {"/bin/sh", "-c", "sleep 0.01 & sleep 0.01 & exit 3"};
  spec.environment = OwnEnvironment();
  const auto shell = Spawn(spec);
  ASSERT_OK(shell);
  const TimePoint limit = RealClock().Monotonic() + 60s;
  ASSERT_OK(shell->Wait(limit));
  while (CountLost() < 2 && RealClock().Monotonic() < limit) RealClock().SleepFor(1ms);
  ASSERT_EQ(CountLost(), 2);

  LostChildren lost;
  lost.Reap();
  EXPECT_EQ(CountLost(), 2) << "somebody may be about to adopt them";
  lost.Reap();
  EXPECT_EQ(CountLost(), 0);
  EXPECT_EQ(shell->Wait(limit)->Text(), ExitStatus::Exited(3).Text());
}

}  // namespace
}  // namespace keel
