// Test programs that misbehave on purpose; guarded_test.cc runs them. Not part of CTest's list.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "elastic/process/spawn.h"
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

// Its environment is empty and its session its own, so that only the guard can find it.
TEST(Victim, LeavesAProcessBehind) {
  ASSERT_OK_AND_ASSIGN(PipeEnds pipe, MakePipe());
  ChildSpec spec;
  spec.argv = {"sh", "-c", "env -i setsid sh -c 'echo up; sleep 1000; true' & wait"};
  spec.environment = OwnEnvironment();
  spec.out = Stream::Borrowed(pipe.write);
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec));
  char byte = 0;
  ASSERT_EQ(read(pipe.read.number(), &byte, 1), 1);
}

}  // namespace
}  // namespace keel
