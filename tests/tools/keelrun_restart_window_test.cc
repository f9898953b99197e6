// --restart-window with real processes: deaths that are further apart than it may go on for ever.
// The waits are the workers' own, so a slow machine only makes them longer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

// A foreign job of one worker, which may die once within the window.
Launched Foreign(const TempDir& folder, const std::string& window, const std::string& script) {
  return {folder, "job", {"--standalone", "--max-restarts=1", "--restart-window=" + window,
                          "--no-python", "sh", "-c", script}};
}

TEST(KeelrunRestartWindow, ForeignDeathsFurtherApartDoNotAddUp) {
  TempDir folder;
  Launched job = Foreign(folder, "1s", "echo attempt=$TORCHELASTIC_RESTART_COUNT; "
                                       "[ $TORCHELASTIC_RESTART_COUNT = 3 ] && exit 0; "
                                       "sleep 2; exit 5");
  EXPECT_EQ(job.ExitCode(), 0) << job.Output();
  for (const char* attempt : {"0", "1", "2", "3"}) {
    EXPECT_EQ(job.Count(std::string("^attempt=") + attempt + "$"), 1) << job.Output();
  }
}

TEST(KeelrunRestartWindow, ForeignDeathsWithinItDo) {
  TempDir folder;
  Launched job = Foreign(folder, "1h", "echo attempt=$TORCHELASTIC_RESTART_COUNT; exit 5");
  EXPECT_EQ(job.ExitCode(), 1) << job.Output();
  EXPECT_THAT(job.Output(), HasSubstr("2 failures in the last 1 h 0 min, 1 allowed"));
  EXPECT_EQ(job.Count("^attempt="), 2) << job.Output();
}

// Two workers in place, one of which dies again and again; the other counts on.
class KeelrunRestartWindowInPlace : public ::testing::Test {
 protected:
  void Start(const std::string& window) {
    job_ = hosts_.StartSurvivor("job", {"--nnodes=1", "--max-restarts=1",
                                        "--restart-window=" + window});
  }
  // Whose epoch of two is newer than the last one seen.
  void AwaitBoth() {
    const std::vector<Entry> entries = AwaitEntries(*job_, 2, 2, epoch_);
    ASSERT_EQ(entries.size(), 2u) << job_->Output();
    if (survivor_ < 0) survivor_ = entries[0].pid;
    const bool is_first = entries[0].pid == survivor_;
    epoch_ = entries[0].epoch;
    count_ = entries[is_first ? 0 : 1].count;
    victim_ = entries[is_first ? 1 : 0].pid;
  }
  // So many steps of the survivor, of at least 5 ms each.
  void AwaitSteps(int64_t steps) {
    const int64_t target = ((count_ + steps) / 20 + 1) * 20;
    job_->Await("^rank [01] has counted to " + std::to_string(target) + "$");
  }
  void Kill() { SignalPidIn("pid " + std::to_string(victim_), SIGKILL); }

  JobHosts hosts_{2};
  std::unique_ptr<Launched> job_;
  int64_t epoch_ = 0, survivor_ = -1, victim_ = -1, count_ = 0;
};

TEST_F(KeelrunRestartWindowInPlace, DeathsFurtherApartDoNotAddUp) {
  Start("1s");
  for (int kills = 0; kills < 3; ++kills) {
    ASSERT_NO_FATAL_FAILURE(AwaitBoth());
    AwaitSteps(500);
    Kill();
  }
  ASSERT_NO_FATAL_FAILURE(AwaitBoth());
  hosts_.LetFinish();
  EXPECT_EQ(job_->ExitCode(), 0) << job_->Output();
}

TEST_F(KeelrunRestartWindowInPlace, DeathsWithinItDo) {
  Start("1h");
  for (int kills = 0; kills < 2; ++kills) {
    ASSERT_NO_FATAL_FAILURE(AwaitBoth());
    Kill();
  }
  EXPECT_EQ(job_->ExitCode(), 1) << job_->Output();
  EXPECT_THAT(job_->Output(), HasSubstr("2 failures in the last 1 h 0 min, 1 allowed"));
}

}  // namespace
}  // namespace keel
