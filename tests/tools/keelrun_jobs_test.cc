// Jobs of one host with foreign workers, launched by the real `keelrun`: plain shell scripts that
// know nothing of us.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <sstream>

#include "base/clock.h"
#include "base/json.h"
#include "base/posix_files.h"
#include "base/random.h"
#include "store/resolve.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"
#include "tests/harness/launched.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

// Of those that were started just now one may be between two programs, where it shows no mark.
bool AwaitMarked(const std::string& mark, int least) {
  const TimePoint limit = RealClock().Monotonic() + std::chrono::seconds(120);
  while (CountMarked(mark) < least) {
    if (RealClock().Monotonic() > limit) return false;
    RealClock().SleepFor(std::chrono::milliseconds(10));
  }
  return true;
}

class KeelrunJob : public ::testing::Test {
 protected:
  // A job of `workers`, each running the shell script.
  std::unique_ptr<Launched> Start(int workers, const std::string& script,
                                  std::vector<std::string> options = {},
                                  const Environment& environment = {}) {
    std::vector<std::string> arguments = {"--standalone",
                                          "--nproc-per-node=" + std::to_string(workers)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--no-python", "sh", "-c", script});
    return std::make_unique<Launched>(folder_, "keelrun", std::move(arguments), environment);
  }

  TempDir folder_;
};

TEST_F(KeelrunJob, EveryWorkerKnowsItsPlaceAndTheJobFinishes) {
  const auto job = Start(4, "echo rank=$RANK local=$LOCAL_RANK of=$WORLD_SIZE,$LOCAL_WORLD_SIZE "
                            "group=$GROUP_RANK store=$MASTER_ADDR:$MASTER_PORT "
                            "restarts=$TORCHELASTIC_RESTART_COUNT");
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  for (int rank = 0; rank < 4; ++rank) {
    const std::string number = std::to_string(rank);
    EXPECT_EQ(job->Count("^rank=" + number + " local=" + number +
                         " of=4,4 group=0 store=127.0.0.1:[1-9][0-9]* restarts=0$"), 1)
        << job->Output();
  }
}

// The probe cuts itself off from all name servers, uses a TCPStore and counts what it asked them.
TEST_F(KeelrunJob, AForeignWorkersStoreAsksNoNameServiceUnlessTold) {
  const char* const probe = KEEL_BIN_DIR "/silent_dns_probe_raw";
  Launched numeric(folder_, "numeric", {"--standalone", "--no-python", probe});
  const bool ended_well = numeric.ExitCode() == 0;
  if (numeric.Count("unshare") > 0) GTEST_SKIP() << "this machine allows no network namespaces";
  EXPECT_TRUE(ended_well) << numeric.Output();
  EXPECT_EQ(NumberAfter(numeric.Output(), "queries"), 0) << numeric.Output();
  Launched asking(folder_, "asking",
                  {"--standalone", "--no-numeric-names", "--no-python", probe});
  EXPECT_EQ(asking.ExitCode(), 0) << asking.Output();
  EXPECT_GT(NumberAfter(asking.Output(), "queries"), 0) << asking.Output();
}

TEST_F(KeelrunJob, AFailingRankIsRestartedAsOftenAsAllowedAndThenNamed) {
  const auto job = Start(3, "echo attempt=$TORCHELASTIC_RESTART_COUNT rank=$RANK; "
                            "[ $RANK = 1 ] && exit 3; exec sleep 1000",
                         {"--max-restarts=2"});
  EXPECT_EQ(job->ExitCode(), 1);
  for (const char* attempt : {"0", "1", "2"}) {
    EXPECT_EQ(job->Count(std::string("^attempt=") + attempt + " rank=1$"), 1) << job->Output();
  }
  EXPECT_EQ(job->Count("^attempt=3"), 0);
  for (const char* part : {"Root Cause (first observed failure)", "rank      : 1 (local_rank: 1)",
                           "exitcode  : 3", "went on as epoch 2", "3 failures, 2 allowed"}) {
    EXPECT_THAT(job->Output(), HasSubstr(part));
  }
}

TEST_F(KeelrunJob, WhatAWorkerWroteInItsErrorFileIsInTheReportAndHandedOn) {
  const std::string ours = folder_.File("ours.json");
  const auto job = Start(
      2, "[ $RANK = 0 ] && exec sleep 1000; echo '{\"message\": {\"message\": \"Boom on Tuesday\", "
         "\"extraInfo\": {\"py_callstack\": \"line 7\", \"timestamp\": \"1795000000\"}}}' "
         "> $TORCHELASTIC_ERROR_FILE; exit 5",
      {}, {{"TORCHELASTIC_ERROR_FILE", ours}});
  EXPECT_EQ(job->ExitCode(), 1);
  EXPECT_THAT(job->Output(), HasSubstr("line 7"));
  EXPECT_THAT(job->Output(), HasSubstr("error=\"Boom on Tuesday\""));
  EXPECT_THAT(ReadFile(ours), HasSubstr("Boom on Tuesday"));
}

TEST_F(KeelrunJob, LeavesNothingInTheTemporaryFolderButWhatAWorkerWrote) {
  PosixFiles files;
  const std::string temporary = folder_.File("temporary");
  ASSERT_OK(files.MakeDir(temporary));
  const Environment there = {{"TMPDIR", temporary}};
  const auto silent = Start(2, "echo in ${TORCHELASTIC_ERROR_FILE%/*}; "
                               "[ -d ${TORCHELASTIC_ERROR_FILE%/*} ]", {}, there);
  EXPECT_EQ(silent->ExitCode(), 0) << silent->Output();
  EXPECT_EQ(silent->Count("^in " + temporary), 2) << silent->Output();
  EXPECT_TRUE(files.List(temporary)->empty());
  const auto failing = Start(2, "[ $RANK = 0 ] && exec sleep 1000; "
                                "echo wrong > $TORCHELASTIC_ERROR_FILE; exit 3", {}, there);
  EXPECT_EQ(failing->ExitCode(), 1) << failing->Output();
  EXPECT_EQ(files.List(temporary)->size(), 1U);
}

TEST_F(KeelrunJob, AKilledWorkerCostsARestartAndTheJobFinishes) {
  const auto job = Start(2, "echo attempt=$TORCHELASTIC_RESTART_COUNT rank=$RANK pid $$$$; "
                            "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; exec sleep 1000",
                         {"--max-restarts=1"});
  job->Await("^attempt=0 rank=0");
  SignalPidIn(job->Await("^attempt=0 rank=1"), SIGKILL);
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("killed by signal 9 (SIGKILL)"));
}

TEST_F(KeelrunJob, NothingOutlivesALauncherThatIsKilled) {
  Random random(EntropySeed());
  const std::string mark = RandomId(random, 16);
  const auto job = Start(2, "setsid sleep 1000 & sleep 1000 & echo up $RANK; wait", {},
                         {{"KEEL_TEST_MARK", mark}});
  job->Await("^up 0");
  job->Await("^up 1");
  EXPECT_TRUE(AwaitMarked(mark, 7));
  job->Kill();
  EXPECT_TRUE(AwaitNoneMarked(mark));
}

// A launcher within a job has a guard of its own, which the outer one's guard must spare.
TEST_F(KeelrunJob, NothingOutlivesAnOuterLauncherThatIsKilled) {
  Random random(EntropySeed());
  const std::string mark = RandomId(random, 16);
  const auto job = Start(1, KEEL_BIN_DIR "/keelrun --standalone --no-python sh -c "
                            "'setsid sleep 1000 & sleep 1000 & echo up; wait'",
                         {}, {{"KEEL_TEST_MARK", mark}});
  job->Await("^up");
  job->Kill();
  EXPECT_TRUE(AwaitNoneMarked(mark));
}

TEST_F(KeelrunJob, NothingIsLeftOfAJobThatEnds) {
  Random random(EntropySeed());
  const std::string mark = RandomId(random, 16);
  const auto job = Start(2, "setsid sleep 1000 & sleep 1000 & exit 0", {},
                         {{"KEEL_TEST_MARK", mark}});
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(CountMarked(mark), 0);
}

TEST_F(KeelrunJob, AStoppedJobOfWorkersThatEndWellIsToBeStartedAgain) {
  const auto job = Start(2, "trap 'echo bye $RANK; exit 0' TERM; echo up $RANK; "
                            "while :; do sleep 0.05; done");
  job->Await("^up 0");
  job->Await("^up 1");
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_EQ(job->Count("^bye"), 2);
}

TEST_F(KeelrunJob, AStoppedJobOfWorkersThatDieOfItIsNotSaved) {
  const auto job = Start(2, "echo up $RANK; exec sleep 1000");
  job->Await("^up 0");
  job->Await("^up 1");
  job->Signal(SIGINT);
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
}

// Whoever waits for the job wants its exit code, however impatient somebody else is.
TEST_F(KeelrunJob, ToldToStopAgainAndAgainUntilItIsGoneItEndsWithTheSameCode) {
  for (int round = 0; round < 5; ++round) {
    const auto job = Start(1, "echo up; exec sleep 1000");
    job->Await("^up");
    for (int i = 0; i < 1000; ++i) {
      job->Signal(SIGTERM);
      RealClock().SleepFor(std::chrono::microseconds(200));
    }
    EXPECT_EQ(job->ExitCode(), 77) << job->Output();
  }
}

TEST_F(KeelrunJob, InterruptedTwiceItWaitsForNobody) {
  const auto job = Start(1, "trap '' TERM INT; echo up; while :; do sleep 0.05; done",
                         {"--shutdown-timeout=1000"});
  job->Await("^up");
  job->Signal(SIGINT);
  // The 2 s in between may pass on a busy machine; then it is one more that is the second.
  for (int seen = 1; seen <= 10; ++seen) {
    const std::string line = job->Await("killing-all|signal signal=SIGINT", seen);
    if (line.empty() || line.find("killing-all") != std::string::npos) break;
    job->Signal(SIGINT);
  }
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
}

// The worker tells when the window of 2 s is over.
TEST_F(KeelrunJob, InterruptedAgainMuchLaterItGoesOnStopping) {
  const auto job = Start(1, "trap 'sleep 2.5; echo later' INT; echo up; "
                            "while :; do sleep 0.05; done",
                         {"--shutdown-timeout=1000"});
  job->Await("^up");
  job->Signal(SIGINT);
  job->Await("^later");
  job->Signal(SIGINT);
  job->Await("stopping-already.*press Ctrl-C twice within 2 s to kill at once");
  EXPECT_EQ(job->Count("killing-all"), 0) << job->Output();
  job->Kill();
}

TEST_F(KeelrunJob, ASignalThatWasNamedStopsTheJobWhateverElseItMeans) {
  const auto job = Start(2, "trap 'echo usr2 $RANK; exit 0' USR2; echo up $RANK; "
                            "while :; do sleep 0.05; done", {"--signals-to-handle=SIGUSR2"});
  job->Await("^up 0");
  job->Await("^up 1");
  job->Signal(SIGUSR2);
  job->Await("^usr2 0");
  job->Await("^usr2 1");
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_EQ(job->Count("save-wanted"), 0) << job->Output();
}

TEST_F(KeelrunJob, AWorkerThatIgnoresSigtermIsKilledWhenItsTimeIsOver) {
  const std::string ready = folder_.File("ready");
  const auto job = Start(2, "trap '' TERM; "
                            "[ $RANK = 1 ] && : > " + ready + " && while :; do sleep 0.05; done; "
                            "until [ -e " + ready + " ]; do sleep 0.05; done; exit 1",
                         {"--shutdown-timeout=0.3"});
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("did not end after SIGTERM"));
}

TEST_F(KeelrunJob, AProgramThatIsNotThereIsNamed) {
  Launched job(folder_, "keelrun", {"--standalone", "--no-python", "/nonexistent/program"});
  EXPECT_EQ(job.ExitCode(), 1);
  EXPECT_THAT(job.Output(), HasSubstr("/nonexistent/program"));
}

TEST_F(KeelrunJob, APortThatIsTakenIsNamed) {
  const std::string port = std::to_string(FreePort());
  Launched first(folder_, "first", {"--master-port=" + port, "--no-python", "sh", "-c",
                                    "echo up; exec sleep 1000"});
  first.Await("^up");
  Launched second(folder_, "second", {"--master-port=" + port, "--no-python", "true"});
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_THAT(second.Output(), HasSubstr(port));
  EXPECT_THAT(second.Output(), HasSubstr("another program listens there"));
}

TEST_F(KeelrunJob, ForMachinesEveryLineIsJsonAndTheLastOneIsTheSummary) {
  const auto job = Start(1, "exit 4", {"--log-format=json"});
  EXPECT_EQ(job->ExitCode(), 1);
  std::istringstream lines(job->Output());
  Json last;
  for (std::string line; std::getline(lines, line);) {
    const Result<Json> json = ParseJson(line);
    ASSERT_TRUE(json.ok()) << line;
    last = *json;
  }
  EXPECT_EQ(last["summary"]["exit_code"], 1);
  EXPECT_EQ(last["report"]["failures"].size(), 1U);
}

TEST_F(KeelrunJob, OutputGoesToFilesWhereItIsAskedFor) {
  const auto job = Start(2, "echo out $RANK; echo err $RANK >&2",
                         {"--log-dir=" + folder_.File("logs"), "--redirects=3", "--tee=1:1",
                          "--rdzv-id=files"});
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("out 0"), 0) << job->Output();
  EXPECT_EQ(job->Count("^\\[default1\\]:out 1$"), 1) << job->Output();
}

TEST_F(KeelrunJob, TellsTheEndHoweverMuchItsWorkersSayOfTheirErrors) {
  const std::string script =
      "{ printf '{\"message\": \"Boom '; head -c 1500000 /dev/zero | tr '\\0' x; "
      "printf ' on Friday\"}'; } > $TORCHELASTIC_ERROR_FILE; exit 5";
  const auto has = [](const Launched& job, const std::string& part) {
    return job.Output().find(part) != std::string::npos;   // in a line too long to be shown
  };
  const auto job = Start(2, script);
  EXPECT_EQ(job->ExitCode(), 1);
  EXPECT_LT(job->Output().size(), 100'000U);
  for (const char* part : {" worker-died ", "error=\"Boom xxx", "xxx on Friday\"",
                           "left out here; all of it is in", "(exit code 1)",
                           "Root Cause (first observed failure)"}) {
    EXPECT_TRUE(has(*job, part)) << part;
  }
  const auto json = Start(2, script, {"--log-format=json"});
  EXPECT_EQ(json->ExitCode(), 1);
  const std::string whole = "\"traceback\":\"Boom " + std::string(1'500'000, 'x') + " on Friday\"";
  const std::vector<std::string> parts = {"\"summary\":", "\"report\":", whole};
  for (const std::string& part : parts) {
    EXPECT_TRUE(has(*json, part)) << part.substr(0, 20);
  }
}

}  // namespace
}  // namespace keel
