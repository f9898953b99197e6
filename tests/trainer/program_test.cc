// A training program as a program: what becomes of what it prints, of signals in its first moments,
// and of numbers that would take the whole machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/file_text.h"
#include "tests/trainer/save/saving_job.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Program : public SavingJob {
 protected:
  std::unique_ptr<Launched> Shell(const std::string& script) {
    return std::make_unique<Launched>(
        folder_, "shell", Launched::Command{{"/bin/sh", "-c", script, "sh", kProgram, dir_}});
  }
  std::unique_ptr<Launched> StartWith(const Environment& environment, const Words& options) {
    return std::make_unique<Launched>(folder_, "program",
                                      Launched::Command{Joined({kProgram}, options)}, environment);
  }
};

// --- What it prints ---

TEST_F(Program, ThatHasFinishedOnAFullDiskSaysSoOnStderrAndDoesNotEndWith0) {
  const auto job = Shell("exec $1 --steps=3 --log-every=1 --checkpoint-dir $2 >/dev/full");
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  EXPECT_THAT(job->Output(), AllOf(HasSubstr("training has finished and is saved"),
                                   HasSubstr("No space left on device"),
                                   HasSubstr("its last line is: final step=3 trail=")));
  EXPECT_EQ(job->Count(" output-lost "), 1) << job->Output();
  EXPECT_EQ(job->Count(" info step step=3 "), 1) << job->Output();
  // With a stdout that works, the same command trains no more.
  const auto again = StartAlone(Saving({"--steps=3"}));
  EXPECT_EQ(again->ExitCode(), 0) << again->Output();
  EXPECT_EQ(again->Count("^step "), 0) << again->Output();
  EXPECT_THAT(job->Output(), HasSubstr(LastLineOf(*again)));
}

// A pipe that has no reader from the start.
TEST_F(Program, ThatHasFinishedWithNobodyWhoReadsSaysSoToo) {
  const auto job = Shell("mkfifo $2; exec 3<>$2; exec >$2; exec 3<&-; exec $1 --steps=3");
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  EXPECT_THAT(job->Output(),
              AllOf(HasSubstr("training has finished, but"), HasSubstr("Broken pipe"),
                    HasSubstr("final step=3 trail=")));
}

TEST_F(Program, WhoseLastLineIsLostEndsItsJobAndIsNotStartedAgain) {
  const auto job = Shell("exec " KEEL_BIN_DIR "/keelrun --standalone --nproc-per-node=2 "
                         "--max-restarts=3 $1 --steps=3 --log-every=1 >/dev/full");
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("its last line is: final step=3 trail="));
  EXPECT_EQ(job->Count(" epoch-formed "), 1) << job->Output();
  EXPECT_EQ(job->Count(" info step step=1 "), 1) << job->Output();
}

TEST_F(Program, ThatIsStoppedSavesAlsoWhereNobodyTakesWhatItPrints) {
  const auto job =
      Shell("exec $1 --steps=1000000 --pause=15ms --log-every=1 --checkpoint-dir $2 >/dev/full");
  job->Await(" info step step=3 ");
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_THAT(WholeSteps(), Not(IsEmpty()));
}

TEST_F(Program, WhoseHelpIsLostFailsUnlessItsReaderHasSeenEnough) {
  for (const std::string option : {"--help", "--print-config"}) {
    EXPECT_EQ(Shell("exec $1 " + option + " >/dev/full")->ExitCode(), 1);
    EXPECT_EQ(Shell("rm -f $2; mkfifo $2; exec 3<>$2; exec >$2; exec 3<&-; exec $1 " + option)
                  ->ExitCode(),
              0);
  }
}

// --- Signals ---

TEST_F(Program, SignalledBeforeItsFirstLineOfCodeHasStoppedWithNothingLost) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const Environment early = {{"KEEL_TEST_EARLY_SIGNAL", std::to_string(signal)}};
    for (const bool saves : {false, true}) {
      const Words options = {"--steps=1000000"};
      const auto job = StartWith(early, saves ? Saving(options) : options);
      EXPECT_EQ(job->ExitCode(), 75) << signal << job->Output();
      EXPECT_EQ(job->Count("^stopped before training began: nothing is lost$"), 1);
    }
  }
}

// As nohup, and a shell that starts a program in the background, have it.
TEST_F(Program, GoesOnWhereASignalIsIgnored) {
  const auto job = std::make_unique<Launched>(
      folder_, "ignoring",
      Launched::Command{{"/bin/sh", "-c", "trap '' INT; exec $1 --steps=3", "sh", kProgram}},
      Environment{{"KEEL_TEST_EARLY_SIGNAL", std::to_string(SIGINT)}});
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
}

// A file of options that never comes.
TEST_F(Program, WaitingForItsOptionsStopsAtOnce) {
  const std::string file = folder_.File("run.toml");
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  const auto job = StartAlone({"--config", file});
  const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);   // returns once the program reads
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  close(fd);
}

TEST_F(Program, WithNowhereToSaveItSaysThatAStopHasLostItsSteps) {
  const auto job = StartAlone(Joined({"--steps=1000000"}, kSlow));
  job->Await("^step 3 ");
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
}

// A thread that was there before training blocks nothing: it gets what is meant for the process, or
// a signal of its own.
TEST_F(Program, IsStoppedAndSavesWhicheverThreadTheSignalComesTo) {
  size_t saves = 0;
  for (const bool to_thread : {false, true}) {
    const auto job = StartWith({{"KEEL_TEST_EARLY_THREAD", "1"}}, Saving(Endless({})));
    const int64_t thread = NumberAfter(job->Await("^early thread "), "thread");
    ASSERT_GT(thread, 0);
    AwaitSteps(*job, 3);
    if (to_thread) {
      ASSERT_EQ(syscall(SYS_tgkill, job->pid(), static_cast<pid_t>(thread), SIGTERM), 0);
    } else {
      job->Signal(SIGTERM);
    }
    EXPECT_EQ(job->ExitCode(), 75) << job->Output();
    EXPECT_EQ(job->Count(" stop-wanted signal=SIGTERM "), 1) << job->Output();
    EXPECT_EQ(WholeSteps().size(), ++saves);
  }
}

// The same for a save that somebody asks for, after which training goes on.
TEST_F(Program, SavesWhicheverThreadTheSignalComesTo) {
  const auto job = StartWith({{"KEEL_TEST_EARLY_THREAD", "1"}}, Saving(Endless({})));
  const int64_t thread = NumberAfter(job->Await("^early thread "), "thread");
  ASSERT_GT(thread, 0);
  const auto signal = [&](int number) {
    ASSERT_EQ(syscall(SYS_tgkill, job->pid(), static_cast<pid_t>(thread), number), 0);
  };
  AwaitSteps(*job, 3);
  signal(SIGUSR2);
  AwaitCheckpoints(*job, 1);
  AwaitSteps(*job, 3);
  EXPECT_EQ(job->Count(" stop-wanted "), 0) << job->Output();
  signal(SIGINT);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_EQ(WholeSteps().size(), 2U);
}

// --- Numbers ---

TEST_F(Program, RefusesNumbersThatWouldTakeTheWholeMachine) {
  const std::pair<const char*, const char*> kTooLarge[] = {{"--threads=100000", "1024"},
                                                           {"--load-threads=100000", "1024"},
                                                           {"--load-ahead=100000", "1024"},
                                                           {"--lanes=100000", "65536"},
                                                           {"--lane-batch=10000000", "1048576"}};
  for (const auto& [option, limit] : kTooLarge) {
    const auto job = StartAlone({"--steps=1", option});
    EXPECT_EQ(job->ExitCode(), 2) << job->Output();
    EXPECT_THAT(job->Output(), HasSubstr(limit));
  }
}

TEST_F(Program, WarnsOfMoreThreadsThanItHasProcessors) {
  const std::string here = std::to_string(sched_getcpu());
  const auto start = [&](const char* threads) {
    return std::make_unique<Launched>(
        folder_, "pinned",
        Launched::Command{{"/usr/bin/taskset", "-c", here, kProgram, "--steps=1", threads}});
  };
  const auto two = start("--threads=2");
  EXPECT_EQ(two->ExitCode(), 0) << two->Output();
  EXPECT_EQ(two->Count(" warn threads-above-processors threads=2 processors=1 "), 1)
      << two->Output();
  const auto one = start("--threads=1");
  EXPECT_EQ(one->ExitCode(), 0) << one->Output();
  EXPECT_EQ(one->Count(" threads-above-processors "), 0) << one->Output();
}

// --- Files ---

TEST_F(Program, TrainsOnWhereALogGrowsBeyondTheFileSizeLimit) {
  const std::string log = folder_.File("train.jsonl");
  WriteFile(log, std::string(1024, ' '));
  // What it prints goes to a pipe, which has no such limit.
  const auto job = Shell("{ ulimit -f 1; $1 --steps=30 --log-every=1 --log-jsonl=" + log +
                         "; echo it ended with $?; } 2>&1 | cat");
  EXPECT_EQ(job->ExitCode(), 0);
  EXPECT_THAT(job->Output(), AllOf(HasSubstr("it ended with 0"), HasSubstr("File too large"),
                                   HasSubstr("final step=30 trail=")));
}

}  // namespace
}  // namespace keel
