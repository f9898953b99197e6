// Jobs of one host with workers in place (tests/elastic/survivor.cc), launched by the real
// `keelrun`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/text.h"
#include "tests/harness/launched.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class KeelrunSurvivors : public ::testing::Test {
 protected:
  std::unique_ptr<Launched> Start(int workers, std::vector<std::string> options,
                                  const Environment& environment = {}) {
    std::vector<std::string> arguments = {"--standalone",
                                          "--nproc-per-node=" + std::to_string(workers)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {KEEL_BIN_DIR "/survivor", done_file_});
    return std::make_unique<Launched>(folder_, "keelrun", std::move(arguments), environment);
  }
  void LetFinish() { WriteFile(done_file_, ""); }
  // Between these two no worker that starts gets ready.
  void CloseGate() { WriteFile(done_file_ + ".gate", ""); }
  void OpenGate() { EXPECT_EQ(unlink((done_file_ + ".gate").c_str()), 0); }
  static int64_t PidIn(const std::string& line) { return NumberAfter(line, "pid"); }
  // What the worker had counted to as it entered each of its epochs.
  static std::vector<int64_t> CountsOf(const Launched& job, int64_t pid) {
    std::vector<int64_t> counts;
    for (const std::string& line : SplitList(job.Output(), '\n')) {
      if (PidIn(line) == pid) counts.push_back(NumberAfter(line, "count"));
    }
    return counts;
  }
  static std::string Enters(int epoch, int rank, int world) {
    return "^epoch " + std::to_string(epoch) + " rank " + std::to_string(rank) + " of " +
           std::to_string(world) + " ";
  }

  TempDir folder_;
  const std::string done_file_ = folder_.File("done");
};

TEST_F(KeelrunSurvivors, StoppedBeforeAnyWorkerSaidHelloNothingIsLost) {
  CloseGate();
  const auto job = Start(2, {"--log-level=debug"});
  job->Await("worker-started", 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
}

TEST_F(KeelrunSurvivors, WorkersInPlaceFinish) {
  const auto job = Start(2, {});
  job->Await(Enters(1, 0, 2));
  job->Await(Enters(1, 1, 2));
  LetFinish();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^done"), 2);
}

TEST_F(KeelrunSurvivors, OthersKeepTheirMemoryWhenOneIsKilledAndItComesBack) {
  const auto job = Start(3, {"--max-restarts=3"});
  const int64_t first = PidIn(job->Await(Enters(1, 0, 3)));
  const std::string victim = job->Await(Enters(1, 1, 3));
  const int64_t last = PidIn(job->Await(Enters(1, 2, 3)));
  job->Await("^rank 0 has counted");
  job->Await("^rank 2 has counted");
  CloseGate();
  SignalPidIn(victim, SIGKILL);
  // Two go on at once, with what they had; ranks above the new size move down.
  const std::string small = job->Await(Enters(2, 0, 2));
  EXPECT_EQ(PidIn(small), first);
  EXPECT_EQ(PidIn(job->Await(Enters(2, 1, 2))), last);
  // The one that was started again joins at a boundary, once it is ready.
  OpenGate();
  const std::string again = job->Await(Enters(3, 0, 3));
  EXPECT_EQ(PidIn(again), first);
  EXPECT_GE(NumberAfter(small, "count"), 20);
  EXPECT_GE(NumberAfter(again, "count"), NumberAfter(small, "count"));
  job->Await(Enters(3, 1, 3));
  job->Await(Enters(3, 2, 3));
  EXPECT_EQ(job->Count("^epoch 3 .* count 0$"), 1) << job->Output();
  LetFinish();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("killed by signal 9 (SIGKILL)"));
}

TEST_F(KeelrunSurvivors, TenKillsInARowAreSurvived) {
  const auto job = Start(3, {"--max-restarts=10"});
  const int64_t first = PidIn(job->Await(Enters(1, 0, 3)));
  std::set<int64_t> spared = {first};
  for (int kills = 0, seen = 0; kills < 10; ++kills) {
    // The newest worker that is not the first one, and that was not killed.
    std::string victim;
    do {
      victim = job->Await("^epoch [0-9]+ rank .* pid", ++seen);
      ASSERT_NE(victim, "");
    } while (!spared.insert(PidIn(victim)).second);
    SignalPidIn(victim, SIGKILL);
  }
  job->Await("worker-died", 10);
  LetFinish();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  // Each of them died, whatever it did just then, and is told of.
  EXPECT_EQ(job->Count("worker-died .*killed by signal 9"), 10) << job->Output();
  EXPECT_EQ(job->Count("^  2.* epoch [0-9]+: (rank|seat) [0-9]+ on .* killed by signal 9"), 10)
      << job->Output();
  // The first one lived through it all, until the work was done, and lost nothing; whoever else
  // counts began at 0.
  EXPECT_EQ(job->Count("worker-ended .*pid=" + std::to_string(first) + " .*exited with 0"), 1)
      << job->Output();
  const std::vector<int64_t> counts = CountsOf(*job, first);
  EXPECT_GE(counts.size(), 5U) << job->Output();
  EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end())) << job->Output();
}

TEST_F(KeelrunSurvivors, AWorkerBuiltForAnotherLauncherIsNamed) {
  const auto job = Start(1, {}, {{"SURVIVOR_VERSION", "999"}});
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("speaks version 999 of the link"));
}

TEST_F(KeelrunSurvivors, AStopIsHonouredAndSaved) {
  const auto job = Start(2, {});
  job->Await(Enters(1, 0, 2));
  job->Await(Enters(1, 1, 2));
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_EQ(job->Count("^stopped at"), 2);
}

TEST_F(KeelrunSurvivors, WorkersOfAStoppedSupervisorParkAndKeepTheirMemory) {
  const auto job = Start(2, {"--store-limit=5s"});
  const int64_t first = PidIn(job->Await(Enters(1, 0, 2)));
  const int64_t second = PidIn(job->Await(Enters(1, 1, 2)));
  job->Await("^rank 0 has counted");
  job->Await("^rank 1 has counted");
  job->Signal(SIGSTOP);
  job->Await("^broken 1", 2);   // nobody told them
  job->Signal(SIGCONT);
  const std::string again = job->Await(Enters(2, 0, 2));
  EXPECT_EQ(PidIn(again), first);
  EXPECT_EQ(PidIn(job->Await(Enters(2, 1, 2))), second);
  EXPECT_GE(NumberAfter(again, "count"), 20);
  LetFinish();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
}

// Both stand still then, but only one is behind. It has our handler, so it writes its own stacks.
TEST_F(KeelrunSurvivors, OfTwoThatStandStillTheOneBehindIsKilledAndTheOtherLivesOn) {
  const auto job =
      Start(2, {"--max-restarts=1", "--hang-limit=5s"}, {{"SURVIVOR_TOGETHER", "1"}});
  const int64_t survivor = PidIn(job->Await(Enters(1, 0, 2)));
  const int64_t victim = PidIn(job->Await(Enters(1, 1, 2)));
  const std::string pid = std::to_string(victim);
  job->Await("^rank 1 has counted");
  WriteFile(done_file_ + ".hang." + pid, "");
  job->Await("^hangs pid " + pid + "$");
  job->Await("epoch-broken .*cause=hung .*nothing moved for .* rank 1 is behind, at .*; the "
             "furthest is at step");
  job->Await("warn stack local_rank=1 line=.*process " + pid + " ");
  job->Await("^keel: stacks of process " + pid + " were asked for");
  job->Await("^keel: end of the stacks of process " + pid);
  job->Await("worker-died rank=1 .*pid=" + pid + " .*killed by signal 9");
  const std::string replaced = job->Await("^epoch [0-9]+ rank 1 of 2 pid ", 2);
  EXPECT_NE(PidIn(replaced), victim);
  LetFinish();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("worker-died "), 1) << job->Output();
  EXPECT_EQ(job->Count("worker-ended .*pid=" + std::to_string(survivor) + " .*exited with 0"), 1)
      << job->Output();
  const std::vector<int64_t> counts = CountsOf(*job, survivor);
  ASSERT_GE(counts.size(), 2u) << job->Output();
  EXPECT_GE(counts.back(), 20) << "it has kept what it counted\n" << job->Output();
}

TEST_F(KeelrunSurvivors, OneThatHangsIsNamedLookedAtAndKilled) {
  const auto job = Start(1, {"--max-restarts=1", "--hang-limit=5s"});
  const std::string line = job->Await(Enters(1, 0, 1));
  const int64_t victim = PidIn(line);
  job->Await("^rank 0 has counted");
  SignalPidIn(line, SIGSTOP);
  job->Await("nothing moved for .* rank 0 says nothing at all");
  job->Await("stack .*process " + std::to_string(victim));
  const int64_t next = PidIn(job->Await(Enters(2, 0, 1)));
  EXPECT_NE(next, victim);
  LetFinish();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
}

}  // namespace
}  // namespace keel
