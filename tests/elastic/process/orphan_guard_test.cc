// When a guard is gone. That it ends orphans is seen with launchers (keelrun_jobs_test.cc).
#include "elastic/process/orphan_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

// Whoever looks for processes behind a launcher that has ended finds none.
TEST(OrphanGuard, IsGoneOnceItHasBeenDismissed) {
  const TempDir folder;
  const std::string ended = folder.File("ended");
  const pid_t launcher = getpid();
  auto guard = OrphanGuard::Start("KEEL_TEST_NOBODY_HAS=this");
  if (guard.ok() && *guard == nullptr) {
    if (getppid() != launcher) {   // not the one between us
      RealClock().SleepFor(std::chrono::milliseconds(50));   // as a busy machine lets it wait
      WriteFile(ended, "yes");
    }
    _exit(0);
  }
  ASSERT_OK(guard);
  guard->reset();
  EXPECT_EQ(ReadFile(ended), "yes");
}

}  // namespace
}  // namespace keel
