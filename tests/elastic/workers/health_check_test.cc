// HealthCheck: what the end of a command means, and that nothing of it is left.
#include "elastic/workers/health_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = HealthOutcome::Verdict;

HealthOutcome Judge(const std::optional<ExitStatus>& status, const std::string& said = "") {
  return JudgeHealth({"look", 5s, {}}, status, said);
}

TEST(JudgeHealth, TakesTheLastLineForTheReason) {
  EXPECT_EQ(Judge(ExitStatus::Exited(0), "all good\n").verdict, Verdict::kFit);
  const HealthOutcome bad = Judge(ExitStatus::Exited(1), "looking\nGPU 3 is lost\n\n");
  EXPECT_EQ(bad.verdict, Verdict::kUnfit);
  EXPECT_EQ(bad.reason, "the health check 'look' exited with 1: GPU 3 is lost");
  EXPECT_EQ(Judge(ExitStatus::Exited(2)).reason,
            "the health check 'look' exited with 2 and said nothing");
  EXPECT_EQ(Judge(ExitStatus::Killed(SIGSEGV)).reason,
            "the health check 'look' was killed by signal 11 (SIGSEGV) and said nothing");
}

TEST(JudgeHealth, TellsWhatCannotBeRunFromWhatIsNotFit) {
  EXPECT_EQ(Judge(ExitStatus::Exited(127), "sh: look: not found").verdict, Verdict::kCannotRun);
  EXPECT_EQ(Judge(ExitStatus::Exited(126)).verdict, Verdict::kCannotRun);
  const HealthOutcome late = Judge(std::nullopt, "asking GPU 3");
  EXPECT_EQ(late.verdict, Verdict::kUnfit);
  EXPECT_EQ(late.reason,
            "the health check 'look' did not end within 5 s (--health-limit): asking GPU 3");
}

TEST(JudgeHealth, TellsOneLineWhateverWasPrinted) {
  EXPECT_LT(Judge(ExitStatus::Exited(1), std::string(3000, 'x')).reason.size(), 600u);
  EXPECT_THAT(Judge(ExitStatus::Exited(1), "a\x1b[2J\xff").reason, HasSubstr(R"(a\x1b[2J\xff)"));
}

HealthOutcome Checked(const std::string& command, Duration limit = 60s) {
  return CheckHealth({command, limit, OwnEnvironment()}, {});
}

bool IsAlive(const std::string& stat) {
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

TEST(HealthCheck, RunsItsCommandInAShell) {
  EXPECT_EQ(Checked("exit 0").verdict, Verdict::kFit);
  EXPECT_THAT(Checked("echo one; echo two >&2; exit 4").reason, HasSubstr("exited with 4: two"));
  EXPECT_EQ(Checked("/no/such/program").verdict, Verdict::kCannotRun);
}

TEST(HealthCheck, EndsWithItsCommandThoughWhatThatStartedPrintsForEver) {
  EXPECT_THAT(Checked("yes & exit 5").reason, HasSubstr("exited with 5"));
}

TEST(HealthCheck, ReadsAllOfALongOutput) {
  EXPECT_THAT(Checked("head -c 300000 /dev/zero | tr '\\0' '\\n'; echo at last; exit 1").reason,
              HasSubstr("exited with 1: at last"));
}

// However much of it there is to be read when the command has ended.
TEST(HealthCheck, TellsTheLastLineOfABurst) {
  for (const int bytes : {4000, 4096, 5000, 6000, 8192, 9000, 20000}) {
    const std::string command =
        "printf \"%0" + std::to_string(bytes) + "d\\nGPU 3 is lost\\n\" 0; exit 1";
    for (int round = 0; round < 20; ++round) {
      EXPECT_THAT(Checked(command).reason, HasSubstr("exited with 1: GPU 3 is lost"));
    }
  }
}

TEST(HealthCheck, LeavesNothingOfWhatHangs) {
  const TempDir folder;
  const std::string file = folder.File("pid");
  const HealthOutcome late = Checked("sleep 600 & echo $! > " + file + "; wait", 3s);
  EXPECT_EQ(late.verdict, Verdict::kUnfit);
  EXPECT_THAT(late.reason, HasSubstr("did not end within 3 s"));
  // Whoever inherits it may not have reaped it yet.
  const std::string stat = "/proc/" + std::to_string(std::stoi(ReadFile(file))) + "/stat";
  const TimePoint limit = RealClock().Monotonic() + 60s;
  while (IsAlive(ReadFile(stat)) && RealClock().Monotonic() < limit) std::this_thread::yield();
  EXPECT_FALSE(IsAlive(ReadFile(stat)));
}

TEST(HealthCheck, EndsForASignal) {
  // It comes from the command itself, so that it surely runs.
  const std::string command = "kill -USR1 " + std::to_string(getpid()) + "; sleep 600";
  EXPECT_EQ(CheckHealth({command, 60s, OwnEnvironment()}, {SIGUSR1}).verdict, Verdict::kStopped);
}

}  // namespace
}  // namespace keel
