// What the process table shows of this very process and of a child.
#include "elastic/process/process_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "elastic/process/spawn.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

std::optional<ProcessInfo> Find(pid_t pid) {
  const auto all = AllProcesses();
  EXPECT_OK(all);
  const auto found = std::find_if(all->begin(), all->end(),
                                  [pid](const ProcessInfo& process) { return process.pid == pid; });
  return found == all->end() ? std::nullopt : std::optional(*found);
}

// Waits out the end of exec(), in which Spawn() returns.
std::string EnvironmentOf(const Child& child) {
  std::optional<std::string> environment;
  while (!environment) environment = InitialEnvironment(child.pid());
  return *environment;
}

Result<Child> StartSleep() {
  ChildSpec spec;
  spec.argv = {"sleep", "1000"};
  spec.environment = With(OwnEnvironment(), {{"KEEL_TEST_SIGN", "here"}});
  return Spawn(spec);
}

TEST(ProcessTable, ShowsAChildWithParentGroupCommandAndEnvironment) {
  ASSERT_OK_AND_ASSIGN(const Child child, StartSleep());
  const auto info = Find(child.pid());
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->parent, getpid());
  EXPECT_EQ(info->group, child.pid());
  EXPECT_FALSE(info->ended);
  EXPECT_NE(EnvironmentOf(child).find(std::string("KEEL_TEST_SIGN=here\0", 20)),
            std::string::npos);
  EXPECT_EQ(CommandLine(child.pid()), "sleep 1000");
}

TEST(ProcessTable, AnEmptyEnvironmentIsToldFromOneThatIsNotThereYet) {
  ChildSpec spec;
  spec.argv = {"sleep", "1000"};
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec));
  EXPECT_EQ(EnvironmentOf(child), "");
  ASSERT_OK(child.Signal(SIGKILL));
  ASSERT_OK(child.Wait(RealClock().Monotonic() + 60s));
  EXPECT_EQ(EnvironmentOf(child), "");
}

// Between fork and exec, and after it, the sign is there; inside exec there is no answer.
TEST(ProcessTable, TheEnvironmentNeverSeemsEmptyWhileProgramsFollowEachOther) {
  ChildSpec spec;
  const std::string script =
      "[ $1 = 0 ] && exec sleep 1000; exec sh -c \"$2\" sh $(($1 - 1)) \"$2\"";
  spec.argv = {"sh", "-c", script, "sh", "100", script};
  spec.environment = With(OwnEnvironment(), {{"KEEL_TEST_SIGN", "here"}});
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec));
  while (CommandLine(child.pid()) != "sleep 1000") {
    const auto environment = InitialEnvironment(child.pid());
    if (!environment) continue;
    ASSERT_NE(environment->find("KEEL_TEST_SIGN=here"), std::string::npos) << *environment;
    ASSERT_FALSE(child.TryWait()->has_value());
  }
}

TEST(ProcessTable, AChildThatIsNotReapedHasEnded) {
  ASSERT_OK_AND_ASSIGN(const Child child, StartSleep());
  ASSERT_OK(child.Signal(SIGKILL));
  ASSERT_OK(child.Wait(RealClock().Monotonic() + 60s));
  const auto info = Find(child.pid());
  ASSERT_TRUE(info.has_value());
  EXPECT_TRUE(info->ended);
}

TEST(ProcessTable, DescendantsAreFoundThroughGenerations) {
  // Not in order, and 7 belongs to another family.
  const std::vector<ProcessInfo> all = {{.pid = 5, .parent = 3}, {.pid = 7, .parent = 1},
                                        {.pid = 3, .parent = 2}, {.pid = 2, .parent = 1},
                                        {.pid = 4, .parent = 2}};
  std::vector<pid_t> pids;
  for (const ProcessInfo& process : DescendantsOf(2, all)) pids.push_back(process.pid);
  std::sort(pids.begin(), pids.end());
  EXPECT_EQ(pids, (std::vector<pid_t>{3, 4, 5}));
}

TEST(ProcessTable, AKilledProcessIsDyingFromThatMomentOn) {
  ASSERT_OK_AND_ASSIGN(const Child child, StartSleep());
  const ProcessInfo info = *Find(child.pid());
  EXPECT_FALSE(IsDying(info));
  ASSERT_OK(child.Signal(SIGTERM));
  ASSERT_OK(child.Wait(RealClock().Monotonic() + 60s));
  EXPECT_TRUE(IsDying(*Find(child.pid())));
  for (int round = 0; round < 100; ++round) {
    ASSERT_OK_AND_ASSIGN(const Child victim, StartSleep());
    const ProcessInfo before = *Find(victim.pid());
    ASSERT_OK(victim.Signal(SIGKILL));
    EXPECT_TRUE(IsDying(before)) << "round " << round;
  }
}

TEST(ProcessTable, AnotherProcessUnderTheSamePidIsNotOpened) {
  ASSERT_OK_AND_ASSIGN(const Child child, StartSleep());
  ProcessInfo info = *Find(child.pid());
  EXPECT_TRUE(OpenProcess(info).valid());
  ++info.started;
  EXPECT_FALSE(OpenProcess(info).valid());
}

}  // namespace
}  // namespace keel
