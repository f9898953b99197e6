// The first job as a user meets it: real processes, a real store, a real Gloo group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <string>

#include "elastic/process/process_table.h"
#include "store/tcp_store.h"
#include "tests/harness/ranks.h"

namespace keel {
namespace {

constexpr Duration kLimit = std::chrono::seconds(120);

std::vector<std::string> Program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(KEEL_BIN_DIR) + "/allreduce_train");
  return arguments;
}

class AllreduceTrain : public testing::Test {
 protected:
  std::unique_ptr<Ranks> Start(RanksSpec spec) {
    auto ranks = Ranks::Start(std::move(spec), folder_);
    KEEL_CHECK(ranks.ok(), ranks.error().message);
    return std::move(ranks).value();
  }

  // The last line of a run by itself; it must have ended well.
  std::string FinalLine(const std::vector<std::string>& arguments) {
    const auto job = Start({.argv = Program(arguments)});
    const auto end = job->Wait(0, kLimit);
    KEEL_CHECK(end.ok() && end->ok(), job->Report());
    const auto line = job->AwaitLine(0, "workers hold the same parameters", kLimit);
    KEEL_CHECK(line.ok(), line.error().message);
    return *line;
  }

  const TempDir folder_;
};

TEST_F(AllreduceTrain, ItsWorkersEndWithTheSameBitsInEveryRun) {
  const std::string first = FinalLine({"--workers", "2", "--steps", "5"});
  EXPECT_THAT(first, testing::StartsWith("all 2 workers hold the same parameters: digest="));
  EXPECT_EQ(FinalLine({"--workers", "2", "--steps", "5"}), first);
}

TEST_F(AllreduceTrain, TheDigestMovesWithTheStepsAndTheSeed) {
  const std::set<std::string> lines = {FinalLine({"--workers=2", "--steps=5"}),
                                       FinalLine({"--workers=2", "--steps=6"}),
                                       FinalLine({"--workers=2", "--steps=5", "--seed=2"})};
  EXPECT_EQ(lines.size(), 3u);
}

TEST_F(AllreduceTrain, WorksUnderALauncherThatSetsTheEnvironment) {
  const auto host = TcpStoreHost::Open({"127.0.0.1", 0});
  ASSERT_TRUE(host.ok()) << host.error().message;
  const int port = (*host)->port();
  const auto ranks =
      Start({.argv = Program({"--steps=5"}), .count = 3, .environment = [=](int rank) {
               return TorchEnvironment(rank, 3, port);
             }});
  const auto ends = ranks->WaitAll(kLimit);
  ASSERT_TRUE(ends.ok()) << ends.error().message;
  std::set<std::string> digests;
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE((*ends)[rank].ok()) << ranks->Report();
    const std::string output = ranks->Stdout(rank);
    digests.insert(output.substr(output.find("digest=")));
  }
  EXPECT_EQ(digests.size(), 1u) << ranks->Report();
}

// Not survived yet, but noticed: the others' sums fail, the job says who died, and nobody is left
// (the harness fails the test for whoever is).
TEST_F(AllreduceTrain, AKilledWorkerEndsTheJobWithItsName) {
  const auto job = Start({.argv = Program({"--workers=3", "--steps=1000000"})});
  const TimePoint end = RealClock().Monotonic() + kLimit;
  std::vector<ProcessInfo> workers;
  while (workers.size() < 3) {
    ASSERT_LT(RealClock().Monotonic(), end) << job->Report();
    const auto all = AllProcesses();
    ASSERT_TRUE(all.ok()) << all.error().message;
    workers = DescendantsOf(job->pid(0), *all);
  }
  ASSERT_EQ(kill(workers.back().pid, SIGKILL), 0);
  const auto ended = job->Wait(0, kLimit);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(*ended, ExitStatus::Exited(1));
  EXPECT_THAT(job->Stderr(0), testing::HasSubstr("killed by signal 9 (SIGKILL)"));
}

TEST_F(AllreduceTrain, AMistypedOptionIsAnsweredWithTheNearestOne) {
  const auto job = Start({.argv = Program({"--stpes=3"})});
  const auto ended = job->Wait(0, kLimit);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(*ended, ExitStatus::Exited(2));
  EXPECT_THAT(job->Stderr(0), testing::HasSubstr("did you mean '--steps'?"));
}

}  // namespace
}  // namespace keel
