// A `keelrun` that was started with less than it is used to, or is ended by its name.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <vector>

#include "elastic/process/proc_file.h"
#include "elastic/process/process_table.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/launched.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KeelrunSurroundings : public ::testing::Test {
 protected:
  // keelrun behind `before`, words of a shell, with two workers that run the script.
  std::unique_ptr<Launched> Start(const std::string& before, const std::string& script,
                                  const std::string& behind = "",
                                  const std::string& options = "") {
    const std::string line = before + " exec " KEEL_BIN_DIR
                             "/keelrun --standalone --nproc-per-node=2 " +
                             options + " --no-python sh -c '" +
                             script + "' " + behind;
    return std::make_unique<Launched>(folder_, "job" + std::to_string(++jobs_),
                                      Launched::Command{{"sh", "-c", line}},
                                      Environment{{"OUT", folder_.File("out")}});
  }

  TempDir folder_;
  int jobs_ = 0;
};

// All ways in which some streams are closed, as a shell says it.
std::vector<std::string> Closings() {
  const std::vector<std::string> closing = {" 0<&-", " 1>&-", " 2>&-"};
  std::vector<std::string> ways;
  for (unsigned closed = 1; closed < 8; ++closed) {
    ways.emplace_back();
    for (unsigned stream = 0; stream < 3; ++stream) {
      if ((closed >> stream & 1) != 0) ways.back() += closing[stream];
    }
  }
  return ways;
}

TEST_F(KeelrunSurroundings, ClosedStreamsHarmNoJob) {
  for (const std::string& behind : Closings()) {
    WriteFile(folder_.File("out"), "");
    const auto job = Start("", "echo some words; sleep 0.2; echo $RANK >> $OUT", behind);
    EXPECT_EQ(job->ExitCode(), 0) << behind << "\n" << job->Output();
    const std::string out = ReadFile(folder_.File("out"));
    for (const char* rank : {"0\n", "1\n"}) EXPECT_THAT(out, HasSubstr(rank)) << behind;
    EXPECT_EQ(out.size(), 4U) << behind << "\n" << out;
  }
}

// A guard whose link has a closed stream's number would take us for dead, or be gone when we are.
TEST_F(KeelrunSurroundings, ClosedStreamsTakeNoGuardAway) {
  const std::string told = folder_.File("told");
  ASSERT_EQ(mkfifo(told.c_str(), 0600), 0);
  Launched reader(folder_, "reader", Launched::Command{{"sh", "-c", "exec cat <>" + told}});
  int up = 0;
  for (const std::string& behind : Closings()) {
    const auto job = Start("", "sleep 1000 & echo up >" + told + "; exec sleep 1000", behind);
    reader.Await("^up$", up += 2);
    job->Kill();
    ASSERT_TRUE(AwaitNoneMarked(folder_.File("out"))) << behind;
  }
}

TEST_F(KeelrunSurroundings, TooFewDescriptorsAreSaidBeforeAnythingStarts) {
  for (const char* limit : {"8", "9", "12", "20", "40"}) {
    const auto job = Start("ulimit -n " + std::string(limit) + ";", "echo started");
    EXPECT_EQ(job->ExitCode(), 1) << limit << "\n" << job->Output();
    EXPECT_THAT(job->Output(), HasSubstr("at most " + std::string(limit) +
                                         " files may be open at once, and this job needs "));
    EXPECT_THAT(job->Output(), HasSubstr("ulimit -n "));
    EXPECT_THAT(job->Output(), Not(HasSubstr("started")));
  }
}

TEST_F(KeelrunSurroundings, AsManyDescriptorsAsItAsksForAreEnough) {
  const auto refused = Start("ulimit -n 20;", "true");
  const int64_t wanted = NumberAfter(refused->Await("this job needs [0-9]+ "), "needs");
  EXPECT_EQ(refused->ExitCode(), 1) << refused->Output();
  ASSERT_GT(wanted, 20);
  const auto job = Start("ulimit -n " + std::to_string(wanted) + ";", "echo worked");
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^worked$"), 2) << job->Output();
}

TEST_F(KeelrunSurroundings, ALowSoftLimitIsRaised) {
  const auto job = Start("ulimit -S -n 20;", "echo worked");
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^worked$"), 2) << job->Output();
}

// How many lines of the file begin with `word`, once there are two; fewer if that never comes.
int AwaitTwo(const std::string& path, const std::string& word) {
  const TimePoint limit = RealClock().Monotonic() + std::chrono::seconds(120);
  for (;;) {
    const std::string text = "\n" + ReadFile(path);
    int count = 0;
    for (size_t at = 0; (at = text.find("\n" + word, at)) != std::string::npos; ++at) ++count;
    if (count >= 2 || RealClock().Monotonic() > limit) return count;
    RealClock().SleepFor(std::chrono::milliseconds(5));
  }
}

bool AwaitFull(const std::string& pipe) {
  const TimePoint limit = RealClock().Monotonic() + std::chrono::seconds(120);
  const Fd end(open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  for (;;) {
    pollfd room{end.number(), POLLOUT, 0};
    if (poll(&room, 1, 0) == 0) return true;
    if (RealClock().Monotonic() > limit) return false;
    RealClock().SleepFor(std::chrono::milliseconds(5));
  }
}

// As behind `| less`, or on a terminal after Ctrl-S.
TEST_F(KeelrunSurroundings, WhereNobodyReadsItsOutputItHearsSignalsAllTheSame) {
  const std::string out = folder_.File("out");
  const std::string console = folder_.File("console");
  WriteFile(out, "");
  const auto job = Start("mkfifo " + console + "; exec 7<>" + console + ";",
                         "trap \"echo bye >> $OUT; exit 0\" TERM; yes some words | head -c 500000; "
                         "echo up >> $OUT; while :; do sleep 0.05; done",
                         ">" + console + " 2>&1", "--tee=3");
  EXPECT_EQ(AwaitTwo(out, "up"), 2) << "no worker waits for the console";
  EXPECT_TRUE(AwaitFull(console));
  job->Signal(SIGTERM);
  EXPECT_EQ(AwaitTwo(out, "bye"), 2);
  Launched reader(folder_, "reader", Launched::Command{{"cat", console}});
  reader.Await("warn signal signal=SIGTERM");
  reader.Await("^job .*stopped: .*[(]exit code 75[)]");
  EXPECT_EQ(job->ExitCode(), 75);
}

// As `pkill -9 keelrun` and `pkill -9 -f keelrun` find them, but of this test only.
std::vector<Fd> NamedAfterTheLauncher(const std::string& mark) {
  std::vector<Fd> named;
  const auto all = AllProcesses();
  EXPECT_OK(all);
  if (!all.ok()) return named;
  for (const ProcessInfo& process : *all) {
    if (InitialEnvironment(process.pid).value_or("").find(mark) == std::string::npos) continue;
    const std::string folder = "/proc/" + std::to_string(process.pid);
    const std::string names = ReadProcFile(folder + "/comm").value_or("") +
                              ReadProcFile(folder + "/cmdline").value_or("");
    if (names.find("keelrun") != std::string::npos) named.push_back(OpenProcess(process));
  }
  return named;
}

// Workers die with the launcher; what they have started does not, unless the guard sees to it.
TEST_F(KeelrunSurroundings, WhoKillsAllLaunchersByNameLeavesNoWorker) {
  const std::string mark = folder_.File("out");
  const auto job = Start("", "sleep 1000 & echo up; exec sleep 1000");
  job->Await("^up$", 2);
  const std::vector<Fd> named = NamedAfterTheLauncher(mark);
  EXPECT_GE(named.size(), 1U);
  for (const Fd& process : named) EXPECT_OK(SendSignal(process, SIGKILL));
  EXPECT_TRUE(AwaitNoneMarked(mark));
}

}  // namespace
}  // namespace keel
