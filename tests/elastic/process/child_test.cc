// What a Child promises while it lives and when it is destroyed.
#include "elastic/process/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "elastic/process/process_table.h"
#include "elastic/process/spawn.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

Result<Child> Shell(const std::string& script, const Fd* out = nullptr) {
  ChildSpec spec;
  spec.argv = {"/bin/sh", "-c", script};
  spec.environment = OwnEnvironment();
  if (out != nullptr) spec.out = Stream::Borrowed(*out);
  return Spawn(spec);
}

TimePoint Limit() { return RealClock().Monotonic() + 60s; }
TimePoint Shortly() { return RealClock().Monotonic() + 50ms; }

bool GroupIsGone(pid_t group) {
  const auto all = AllProcesses();
  EXPECT_OK(all);
  return std::none_of(all->begin(), all->end(), [group](const ProcessInfo& process) {
    return process.group == group && !process.ended;
  });
}

// Waits for the child's first word, by which its whole script before that has run.
void AwaitWord(const Fd& pipe) {
  char byte = 0;
  ASSERT_EQ(read(pipe.number(), &byte, 1), 1);
}

TEST(Child, TellsExitCodesAndSignalsApart) {
  ASSERT_OK_AND_ASSIGN(const Child exits, Shell("exit 3"));
  ASSERT_OK_AND_ASSIGN(const Child dies, Shell("kill -9 $$"));
  EXPECT_EQ(*exits.Wait(Limit()), ExitStatus::Exited(3));
  EXPECT_EQ(*dies.Wait(Limit()), ExitStatus::Killed(SIGKILL));
}

TEST(Child, CanBeAskedAgainAfterItsEnd) {
  ASSERT_OK_AND_ASSIGN(const Child child, Shell("exit 3"));
  EXPECT_EQ(*child.Wait(Limit()), ExitStatus::Exited(3));
  EXPECT_EQ(*child.Wait(Limit()), ExitStatus::Exited(3));
  EXPECT_EQ(**child.TryWait(), ExitStatus::Exited(3));
  EXPECT_OK(child.Signal(SIGTERM));
  EXPECT_OK(child.SignalGroup(SIGTERM));
}

TEST(Child, ARunningOneIsNotWaitedForBeyondTheDeadline) {
  ASSERT_OK_AND_ASSIGN(const Child child, Shell("exec sleep 1000"));
  const auto now = child.TryWait();
  ASSERT_OK(now);
  EXPECT_FALSE(now->has_value());
  const auto status = child.Wait(Shortly());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kTimeout);
  ASSERT_OK(child.Signal(SIGTERM));
  EXPECT_EQ(*child.Wait(Limit()), ExitStatus::Killed(SIGTERM));
}

TEST(Child, ItsGroupCanBeSignalledAlsoAfterItsOwnEnd) {
  ASSERT_OK_AND_ASSIGN(PipeEnds pipe, MakePipe());
  ASSERT_OK_AND_ASSIGN(const Child child, Shell("sleep 1000 & exit 0", &pipe.write));
  pipe.write.Close();
  EXPECT_EQ(*child.Wait(Limit()), ExitStatus::Exited(0));
  EXPECT_FALSE(GroupIsGone(child.pid()));
  ASSERT_OK(child.SignalGroup(SIGKILL));
  char byte = 0;
  EXPECT_EQ(read(pipe.read.number(), &byte, 1), 0) << "the pipe ends with its last holder";
}

TEST(Child, ItsDestructorEndsAndReapsTheWholeGroupAlsoWhenStopped) {
  pid_t pid = 0;
  {
    ASSERT_OK_AND_ASSIGN(PipeEnds pipe, MakePipe());
    ASSERT_OK_AND_ASSIGN(const Child child,
                         Shell("trap '' TERM; sleep 99 & sleep 99 & echo up; wait", &pipe.write));
    AwaitWord(pipe.read);
    pid = child.pid();
    ASSERT_OK(child.SignalGroup(SIGSTOP));
    EXPECT_FALSE(GroupIsGone(pid));
  }
  EXPECT_TRUE(GroupIsGone(pid));
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1);
}

TEST(Child, MovingItEndsNothing) {
  ASSERT_OK_AND_ASSIGN(Child first, Shell("exec sleep 1000"));
  {
    const Child second = std::move(first);
    EXPECT_FALSE(second.TryWait()->has_value());
  }
}

TEST(Child, OneThatSomebodyElseReapedIsAnErrorAndNoHang) {
  ASSERT_OK_AND_ASSIGN(const Child child, Shell("exit 0"));
  ASSERT_EQ(waitpid(child.pid(), nullptr, 0), child.pid());
  const auto status = child.Wait(Limit());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, ::testing::HasSubstr("reaped by somebody else"));
}

TEST(Child, CanBeSpawnedInAThreadThatOutlivesIt) {
  std::thread thread([] {
    const auto child = Shell("exit 3");
    ASSERT_OK(child);
    EXPECT_EQ(*child->Wait(Limit()), ExitStatus::Exited(3));
  });
  thread.join();
}

TEST(ChildDeathTest, AThreadThatEndsBeforeItsChildIsABug) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        std::optional<Child> child;
        std::thread thread([&] { child.emplace(*Shell("exec sleep 1000")); });
        thread.join();
      },
      "a thread ends while 1 children that it started live");
}

}  // namespace
}  // namespace keel
