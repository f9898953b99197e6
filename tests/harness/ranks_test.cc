// What the harness promises, with programs that behave badly in every way we could think of.
#include "tests/harness/ranks.h"

#include <boost/filesystem.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "elastic/process/process_table.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr Duration kLimit = 60s;      // only reached when something hangs
constexpr Duration kShortly = 50ms;   // for waits that are meant to fail

RanksSpec Shell(const std::string& script, int count = 1) {
  RanksSpec spec;
  spec.argv = {"/bin/sh", "-c", script};
  spec.count = count;
  spec.environment = [count](int rank) { return TorchEnvironment(rank, count, 1); };
  return spec;
}

// Dead; an orphan may still wait for the guard to reap it.
bool IsGone(pid_t pid) {
  const auto all = AllProcesses();
  EXPECT_OK(all);
  return std::none_of(all->begin(), all->end(), [pid](const ProcessInfo& process) {
    return process.pid == pid && !process.ended;
  });
}

size_t OpenDescriptors() {
  const boost::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

size_t OwnChildren() {
  const auto all = AllProcesses();
  EXPECT_OK(all);
  return static_cast<size_t>(std::count_if(all->begin(), all->end(), [](const ProcessInfo& p) {
    return p.parent == getpid();
  }));
}

// The number at the end of a line such as "daemon 123".
pid_t PidIn(const std::string& line) { return std::stoi(line.substr(line.rfind(' ') + 1)); }

class RanksTest : public ::testing::Test {
 protected:
  TempDir folder_;
};

TEST_F(RanksTest, EachRankHasItsEnvironmentAndItsOutput) {
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("echo rank $RANK of $WORLD_SIZE; echo oops $RANK >&2; exit $RANK", 3),
                   folder_));
  ASSERT_OK_AND_ASSIGN(const auto statuses, ranks->WaitAll(kLimit));
  for (int rank = 0; rank < 3; ++rank) {
    const std::string number = std::to_string(rank);
    EXPECT_EQ(statuses[static_cast<size_t>(rank)], ExitStatus::Exited(rank));
    EXPECT_EQ(ranks->Stdout(rank), "rank " + number + " of 3\n");
    EXPECT_EQ(ranks->Stderr(rank), "oops " + number + "\n");
  }
}

TEST_F(RanksTest, OutputIsSavedToAFile) {
  ASSERT_OK_AND_ASSIGN(const auto ranks,
                       Ranks::Start(Shell("echo good; echo bad >&2; exit 3"), folder_));
  ASSERT_OK(ranks->Wait(0, kLimit));
  const std::string saved = ReadFile(folder_.File("rank-0.log"));
  EXPECT_THAT(saved, HasSubstr("out| good\n"));
  EXPECT_THAT(saved, HasSubstr("err| bad\n"));
  EXPECT_THAT(saved, HasSubstr("--- exited with 3\n"));
}

TEST_F(RanksTest, MegabytesAreCollectedWhole) {
  constexpr int kLines = 100000;
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("seq -f 'line %06.0f of some output' " + std::to_string(kLines) +
                         "; seq -f 'error %06.0f' 20000 >&2; printf 'last without newline'"),
                   folder_));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(0, kLimit));
  EXPECT_TRUE(status.ok()) << status.Text();
  std::istringstream printed(ranks->Stdout(0));
  std::string line;
  for (int number = 1; number <= kLines; ++number) {
    std::getline(printed, line);
    ASSERT_EQ(std::stoi(line.substr(5)), number);
  }
  std::getline(printed, line);
  EXPECT_EQ(line, "last without newline");
  const std::string errors = ranks->Stderr(0);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 20000);
}

TEST_F(RanksTest, AwaitLineFindsTextExpressionsAndLaterOccurrences) {
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("for i in 1 2 3; do echo step $i loss 0.$i; done; exec sleep 1000"),
                   folder_));
  EXPECT_EQ(*ranks->AwaitLine(0, "step", kLimit), "step 1 loss 0.1");
  EXPECT_EQ(*ranks->AwaitLine(0, "step", kLimit, 3), "step 3 loss 0.3");
  EXPECT_EQ(*ranks->AwaitLine(0, Pattern::Regex("^step [2-9]"), kLimit), "step 2 loss 0.2");
  EXPECT_EQ(*ranks->AwaitLine(0, "step 1", kLimit), "step 1 loss 0.1");
}

TEST_F(RanksTest, ALimitThatPassesNamesWhoIsWaitedForAndShowsEveryone) {
  ASSERT_OK_AND_ASSIGN(const auto ranks,
                       Ranks::Start(Shell("echo hello from $RANK; exec sleep 1000", 2), folder_));
  ASSERT_OK(ranks->AwaitAll("hello", kLimit));
  const auto line = ranks->AwaitLine(1, "ready", kShortly);
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.error().code, Code::kTimeout);
  EXPECT_THAT(line.error().message, HasSubstr("waited up to 50 ms for rank 1 to print \"ready\""));
  EXPECT_THAT(line.error().message, HasSubstr("rank 1 (pid " + std::to_string(ranks->pid(1)) +
                                              ", running)"));
  EXPECT_THAT(line.error().message, HasSubstr("hello from 0"));
  EXPECT_THAT(line.error().message, HasSubstr("hello from 1"));

  const auto end = ranks->WaitAll(kShortly);
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, Code::kTimeout);
  EXPECT_THAT(end.error().message, HasSubstr("for rank 0 to end"));
}

TEST_F(RanksTest, WaitingForALineEndsWithTheProcess) {
  ASSERT_OK_AND_ASSIGN(const auto ranks, Ranks::Start(Shell("echo no; exit 7"), folder_));
  const auto line = ranks->AwaitLine(0, "yes", kLimit);
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.error().code, Code::kCancelled);
  EXPECT_THAT(line.error().message, HasSubstr("it ended before it printed \"yes\""));
  EXPECT_THAT(line.error().message, HasSubstr("exited with 7"));
}

TEST_F(RanksTest, AKillIsSeenAsSignal9) {
  ASSERT_OK_AND_ASSIGN(const auto ranks, Ranks::Start(Shell("exec sleep 1000", 2), folder_));
  ASSERT_OK(ranks->Signal(1, SIGKILL));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(1, kLimit));
  EXPECT_EQ(status, ExitStatus::Killed(SIGKILL));
  EXPECT_EQ(status.Text(), "killed by signal 9 (SIGKILL)");
  EXPECT_THAT(ranks->Report(), HasSubstr(", running)"));
}

TEST_F(RanksTest, AStoppedProcessIsSilentAndThenGoesOn) {
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.01; done"),
                   folder_));
  ASSERT_OK(ranks->AwaitLine(0, "ready", kLimit));
  ASSERT_OK(ranks->Signal(0, SIGSTOP));
  ASSERT_OK(ranks->Signal(0, SIGTERM));
  EXPECT_FALSE(ranks->Wait(0, kShortly).ok());
  ASSERT_OK(ranks->Signal(0, SIGCONT));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(5));
  EXPECT_EQ(ranks->Stdout(0), "ready\ntold\n");
}

TEST_F(RanksTest, AStoppedProcessIsEnded) {
  pid_t pid = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto ranks, Ranks::Start(Shell("exec sleep 1000"), folder_));
    pid = ranks->pid(0);
    ASSERT_OK(ranks->Signal(0, SIGSTOP));
    EXPECT_FALSE(IsGone(pid));
  }
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(RanksTest, AProcessThatIgnoresSigtermIsEnded) {
  pid_t pid = 0;
  {
    ASSERT_OK_AND_ASSIGN(
        const auto ranks,
        Ranks::Start(Shell("trap '' TERM INT HUP; echo deaf; exec sleep 1000"), folder_));
    pid = ranks->pid(0);
    ASSERT_OK(ranks->AwaitLine(0, "deaf", kLimit));
    ASSERT_OK(ranks->Signal(0, SIGTERM));
    EXPECT_FALSE(ranks->Wait(0, kShortly).ok());
  }
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(RanksTest, GrandchildrenInOtherSessionsAreEnded) {
  std::vector<pid_t> family;
  {
    ASSERT_OK_AND_ASSIGN(
        const auto ranks,
        Ranks::Start(Shell("setsid sh -c 'sleep 1000 & echo daemon $!; sleep 1000' & "
                           "sleep 1000 & echo sibling $!; wait"),
                     folder_));
    ASSERT_OK_AND_ASSIGN(const std::string daemon, ranks->AwaitLine(0, "daemon", kLimit));
    ASSERT_OK_AND_ASSIGN(const std::string sibling, ranks->AwaitLine(0, "sibling", kLimit));
    family = {ranks->pid(0), PidIn(daemon), PidIn(sibling)};
    ASSERT_OK(ranks->Signal(0, SIGKILL));
    ASSERT_OK(ranks->Wait(0, kLimit));   // although the daemon keeps the pipes open
    EXPECT_FALSE(IsGone(family[1]));
  }
  for (const pid_t pid : family) EXPECT_TRUE(IsGone(pid)) << pid;
}

TEST_F(RanksTest, AllIsCollectedAlthoughAGrandchildKeepsThePipeOpen) {
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("setsid sleep 1000 & seq 5000; printf end; exit 0"), folder_));
  ASSERT_OK(ranks->Wait(0, kLimit));
  const std::string printed = ranks->Stdout(0);
  EXPECT_TRUE(printed.ends_with("\n5000\nend\n")) << printed.substr(printed.size() - 20);
}

TEST_F(RanksTest, AProcessThatClosedItsOutputIsStillWatched) {
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("trap 'exit 4' TERM; echo bye; exec >&- 2>&-; while :; do sleep .1; done"),
                   folder_));
  ASSERT_OK(ranks->AwaitLine(0, "bye", kLimit));
  EXPECT_FALSE(ranks->Wait(0, kShortly).ok());
  ASSERT_OK(ranks->Signal(0, SIGTERM));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(4));
}

TEST_F(RanksTest, ASignalCanFollowALine) {
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("i=0; while :; do i=$((i+1)); echo step $i; sleep 0.001; done", 2),
                   folder_));
  ranks->SignalAfterLine(0, Pattern::Regex("step 20$"), 1, SIGKILL);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(1, kLimit));
  EXPECT_EQ(status, ExitStatus::Killed(SIGKILL));
  EXPECT_THAT(ranks->Stdout(0), HasSubstr("step 20\n"));
}

TEST_F(RanksTest, ASignalAfterALineThatIsPrintedAlreadyIsSentAtOnce) {
  ASSERT_OK_AND_ASSIGN(const auto ranks,
                       Ranks::Start(Shell("echo ready; exec sleep 1000"), folder_));
  ASSERT_OK(ranks->AwaitLine(0, "ready", kLimit));
  ranks->SignalAfterLine(0, "ready", 0, SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Killed(SIGTERM));
}

TEST_F(RanksTest, ARestartedRankIsNewAndTheSignalsForItsLinesStayArmed) {
  ASSERT_OK_AND_ASSIGN(
      const auto ranks,
      Ranks::Start(Shell("echo life ${LIFE:-1} of rank $RANK; exec sleep 1000", 2), folder_));
  ASSERT_OK(ranks->AwaitAll("life 1", kLimit));
  const pid_t before = ranks->pid(1);
  ranks->SignalAfterLine(1, "life 2", 0, SIGKILL);
  ASSERT_OK(ranks->Restart(1, {{"LIFE", "2"}}));
  EXPECT_TRUE(IsGone(before));
  ASSERT_OK(ranks->AwaitLine(1, "life 2 of rank 1", kLimit));
  EXPECT_EQ(ranks->Output(1), "life 2 of rank 1\n");
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Killed(SIGKILL));
}

TEST_F(RanksTest, AProgramThatCannotStartNamesTheRank) {
  RanksSpec spec;
  spec.argv = {"/no/such/program"};
  const auto ranks = Ranks::Start(spec, folder_);
  ASSERT_FALSE(ranks.ok());
  EXPECT_EQ(ranks.error().code, Code::kNotFound);
  EXPECT_THAT(ranks.error().message,
              HasSubstr("rank 0: starting '/no/such/program': program not found"));
}

TEST_F(RanksTest, RoundsOfKillingLeakNothing) {
  const size_t descriptors = OpenDescriptors();
  for (int round = 0; round < Rounds(200, 50); ++round) {
    ASSERT_OK_AND_ASSIGN(const auto ranks,
                         Ranks::Start(Shell("echo up; exec sleep 1000", 2), folder_));
    ASSERT_OK(ranks->AwaitLine(round % 2, "up", kLimit));
    ASSERT_OK(ranks->Signal(round % 2, round % 3 == 0 ? SIGTERM : SIGKILL));
    ASSERT_OK(ranks->Wait(round % 2, kLimit));
  }
  EXPECT_EQ(OwnChildren(), 0u) << "zombies";
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

}  // namespace
}  // namespace keel
