// --health-check with real processes: who is not fit does not come, or leaves, with a code of its
// own, and the others go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <thread>

#include "elastic/protocol/exit_codes.h"
#include "tests/support/file_text.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class KeelrunHealth : public ::testing::Test, protected JobHosts {
 protected:
  // Of a host that is fit until the test says that it is not.
  std::string Check() const {
    return "--health-check=test ! -e " + sick_ + " || { echo row remapping failed; exit 3; }";
  }
  void BecomeSick() { WriteFile(sick_, ""); }

  const std::string sick_ = folder().File("sick");
};

TEST_F(KeelrunHealth, WhoIsNotFitStartsNothing) {
  BecomeSick();
  const auto host = StartForeign("host", {"--nnodes=1", Check()});
  EXPECT_EQ(host->ExitCode(), kExitShunned);
  EXPECT_THAT(host->Output(), HasSubstr("exited with 3: row remapping failed"));
  EXPECT_EQ(host->Count("job-started"), 0);
  EXPECT_EQ(host->Count("^up "), 0);
}

TEST_F(KeelrunHealth, ACheckThatCannotBeRunIsNoFaultOfTheMachine) {
  const auto host = StartForeign("host", {"--nnodes=1", "--health-check=no-such-program"});
  EXPECT_EQ(host->ExitCode(), kExitFailed);
  EXPECT_THAT(host->Output(), HasSubstr("'no-such-program' cannot be run: "));
}

TEST_F(KeelrunHealth, WhoIsFitIsCheckedOnceForAllItsWorkers) {
  const std::string count = folder().File("count");
  JobHosts pair(2);
  const auto host =
      pair.StartForeign("host", {"--nnodes=1", "--health-check=echo >> " + count});
  host->Await("^up .*rank=0 ");
  host->Await("^up .*rank=1 ");
  pair.LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  EXPECT_EQ(ReadFile(count), "\n");
}

TEST_F(KeelrunHealth, WhoIsNoLongerFitLeavesOnceAWorkerHasDied) {
  const auto first = StartSurvivor("first", {"--nnodes=1:2", "--max-restarts=2"});
  first->Await("job-started.*hosted_here=true");
  const auto bad = StartSurvivor("bad", {"--nnodes=1:2", "--max-restarts=2", Check()});
  const std::vector<Entry> both = AwaitEntries(*bad, 2, 1);
  ASSERT_EQ(both.size(), 1u);
  BecomeSick();
  SignalPidIn("pid " + std::to_string(both[0].pid), SIGKILL);
  EXPECT_EQ(bad->ExitCode(), kExitShunned) << bad->Output();
  EXPECT_THAT(bad->Output(), HasSubstr("not-healthy"));
  ASSERT_EQ(AwaitEntries(*first, 1, 1, both[0].epoch).size(), 1u);
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
}

TEST_F(KeelrunHealth, TheOneThatCoordinatesHandsItsRoleOver) {
  const auto bad = StartSurvivor("bad", {"--nnodes=1:2", "--max-restarts=2", Check()});
  bad->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", {"--nnodes=1:2", "--max-restarts=2"});
  const std::vector<Entry> both = AwaitEntries(*bad, 2, 1);
  ASSERT_EQ(both.size(), 1u);
  BecomeSick();
  SignalPidIn("pid " + std::to_string(both[0].pid), SIGKILL);
  EXPECT_EQ(bad->ExitCode(), kExitShunned) << bad->Output();
  ASSERT_EQ(AwaitEntries(*second, 1, 1, both[0].epoch).size(), 1u);
  LetFinish();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
}

// All workers of such a job end with the one that died, and start again elsewhere.
TEST_F(KeelrunHealth, AForeignJobGoesOnWithoutTheHostAsWell) {
  const std::vector<std::string> options = {"--nnodes=1:2", "--max-restarts=2",
                                            "--rdzv-conf=last_call_timeout=2"};
  const auto first = StartForeign("first", options);
  first->Await("job-started.*hosted_here=true");
  std::vector<std::string> checked = options;
  checked.push_back(Check());
  const auto bad = Start("bad", checked,
                         {"--no-python", "sh", "-c",
                          "echo up rank=$RANK of=$WORLD_SIZE pid $$$$ end; exec sleep 600"});
  const std::string up = bad->Await("^up .*of=2 ");
  BecomeSick();
  SignalPidIn(up, SIGKILL);
  EXPECT_EQ(bad->ExitCode(), kExitShunned) << bad->Output();
  first->Await("^up .*of=1");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
}

// The first check, before anybody is told of this host, and a later one.
TEST_F(KeelrunHealth, AStopEndsACheckThatHangs) {
  const std::string hang = folder().File("hang");
  const std::string check =
      "--health-check=test ! -e " + hang + " || { echo checking; sleep 600; }";
  const auto host = StartSurvivor("host", {"--nnodes=1", "--max-restarts=2", check});
  const std::vector<Entry> entries = AwaitEntries(*host, 1, 1);
  ASSERT_EQ(entries.size(), 1u);
  WriteFile(hang, "");
  SignalPidIn("pid " + std::to_string(entries[0].pid), SIGKILL);
  host->Await("worker-died");
  host->Signal(SIGTERM);
  EXPECT_EQ(host->ExitCode(), kExitUnsaved) << host->Output();
  const auto next = StartSurvivor("next", {"--nnodes=1", check});
  // Its check is a process of the job already.
  while (CountMarked(mark()) < 2) std::this_thread::yield();
  next->Signal(SIGTERM);
  EXPECT_EQ(next->ExitCode(), kExitStopped) << next->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

}  // namespace
}  // namespace keel
