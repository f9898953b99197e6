// A training program as a program: what becomes of what it prints, and of
// numbers that would take the whole machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include "tests/trainer/saving_job.h"

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

}  // namespace
}  // namespace keel
