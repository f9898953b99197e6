// Nobody escapes: not by a session of its own, nor by losing its parent, nor by being stopped.
#include "elastic/process/descendants.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "elastic/process/process_table.h"
#include "elastic/process/spawn.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

class Descendants : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(BecomeSubreaper()); }
  void TearDown() override { prctl(PR_SET_CHILD_SUBREAPER, 0); }

  static TimePoint Limit() { return RealClock().Monotonic() + 60s; }

  // Runs a script until it has printed a line of pids, then ends it alone; gives the line.
  static std::string LeaveBehind(const std::string& script) {
    auto pipe = MakePipe();
    EXPECT_OK(pipe);
    ChildSpec spec;
    spec.argv = {"sh", "-c", script};
    spec.environment = OwnEnvironment();
    spec.out = Stream::Borrowed(pipe->write);
    const auto child = Spawn(spec);
    EXPECT_OK(child);
    std::string line;
    for (char byte = 0; read(pipe->read.number(), &byte, 1) == 1 && byte != '\n';) line += byte;
    return line;
  }
};

TEST_F(Descendants, WithoutDescendantsThereIsNothingToDo) {
  ASSERT_OK_AND_ASSIGN(const auto killed, KillDescendants(Limit()));
  EXPECT_TRUE(killed.empty());
}

TEST_F(Descendants, EndsOrphansInSessionsOfTheirOwnAndNamesThem) {
  const std::string line = LeaveBehind(
      "setsid sh -c 'setsid sleep 1000 & own_session=$!; sleep 1000 & stopped=$!; "
      "kill -STOP $stopped; echo $$ $own_session $stopped; sleep 1000' & wait");
  pid_t left[3];
  ASSERT_EQ(std::sscanf(line.c_str(), "%d %d %d", &left[0], &left[1], &left[2]), 3) << line;
  ASSERT_OK_AND_ASSIGN(const auto killed, KillDescendants(Limit()));
  for (const pid_t pid : left) {
    const auto named = std::find_if(killed.begin(), killed.end(),
                                    [pid](const KilledProcess& who) { return who.pid == pid; });
    ASSERT_NE(named, killed.end()) << pid;
    EXPECT_NE(named->command, "");
  }
  ASSERT_OK_AND_ASSIGN(const auto all, AllProcesses());
  EXPECT_TRUE(DescendantsOf(getpid(), all).empty());
}

}  // namespace
}  // namespace keel
