// Test programs that misbehave on purpose; guarded_test.cc runs them. Not part of CTest's list.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "elastic/spawn.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/ranks.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

// A rank with a background child in a session of its own; both run until they are killed.
constexpr const char* kWithDaemon = "setsid sleep 1000 & echo daemon $!; exec sleep 1000";

TEST(Victim, Passes) { SUCCEED(); }

TEST(Victim, Fails) { FAIL() << "on purpose"; }

TEST(Victim, IsKilledWhileItsRanksRun) {
  TempDir folder;
  ASSERT_OK_AND_ASSIGN(const auto ranks,
                       Ranks::Start({.argv = {"sh", "-c", kWithDaemon}, .count = 3}, folder));
  ASSERT_OK(ranks->AwaitAll("daemon", 30s));
  std::printf("test process %d has its ranks\n", getpid());
  std::fflush(stdout);
  raise(SIGKILL);
}

TEST(Victim, RunsUntilItIsTold) {
  TempDir folder;
  ASSERT_OK_AND_ASSIGN(const auto ranks,
                       Ranks::Start({.argv = {"sh", "-c", kWithDaemon}, .count = 1}, folder));
  ASSERT_OK(ranks->AwaitAll("daemon", 30s));
  std::printf("test process %d has its ranks\n", getpid());
  std::fflush(stdout);
  for (;;) pause();
}

// Its environment is empty, so that only the guard can find it.
TEST(Victim, LeavesAProcessBehind) {
  ChildSpec spec;
  spec.argv = {"sh", "-c", "env -i setsid sleep 1000 & sleep 0.01"};
  spec.environment = OwnEnvironment();
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec));
  ASSERT_OK(child.Wait(RealClock().Monotonic() + 30s));
}

}  // namespace
}  // namespace keel
