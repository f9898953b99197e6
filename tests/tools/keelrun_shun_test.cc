// --shun-after with real processes: a host of which worker after worker dies is left out, with a
// code of its own, and the others do not pay for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "elastic/protocol/exit_codes.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class KeelrunShun : public ::testing::Test, protected JobHosts {
 protected:
  std::unique_ptr<Launched> Host(const std::string& name, const std::string& hosts,
                                 const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--nnodes=" + hosts, "--max-restarts=2"};
    options.insert(options.end(), more.begin(), more.end());
    return StartSurvivor(name, options);
  }

  // Its worker, once an epoch of all has come; three times, and whoever takes its place. `epoch`:
  // the last one.
  void KillThreeTimes(Launched& host, int world, int64_t& epoch) {
    int64_t victim = -1;
    for (int death = 0; death < 3; ++death) {
      const std::vector<Entry> entries = AwaitEntries(host, world, 1, epoch, victim);
      ASSERT_EQ(entries.size(), 1u) << host.Output();
      epoch = entries[0].epoch;
      victim = entries[0].pid;
      SignalPidIn("pid " + std::to_string(victim), SIGKILL);
    }
  }
};

TEST_F(KeelrunShun, AHostWhoseWorkersDieIsLeftOutUntilItIsForgiven) {
  const auto first = Host("first", "1:3");
  first->Await("job-started.*hosted_here=true");
  const auto bad = Host("bad", "1:3");
  const auto third = Host("third", "1:3");
  int64_t epoch = 0;
  ASSERT_NO_FATAL_FAILURE(KillThreeTimes(*bad, 3, epoch));
  EXPECT_EQ(bad->ExitCode(), kExitShunned) << bad->Output();
  EXPECT_THAT(bad->Output(), HasSubstr("its workers died 3 times within 1 h 0 min; the last one"));
  EXPECT_THAT(bad->Output(), HasSubstr("host-shunned"));
  first->Await("host-shunned");
  ASSERT_EQ(AwaitEntries(*first, 2, 1, epoch).size(), 1u) << first->Output();
  const auto again = Host("again", "1:3");
  EXPECT_EQ(again->ExitCode(), kExitShunned) << again->Output();
  EXPECT_THAT(again->Output(), HasSubstr("start it with --forgive"));
  const auto forgiven = Host("forgiven", "1:3", {"--forgive"});
  EXPECT_EQ(AwaitEntries(*third, 3, 1, epoch).size(), 1u) << third->Output();
  LetFinish();
  for (const auto* host : {&first, &third, &forgiven}) {
    EXPECT_EQ((*host)->ExitCode(), 0) << (*host)->Output();
  }
}

TEST_F(KeelrunShun, TheOneThatCoordinatesHandsItsRoleOver) {
  const auto bad = Host("bad", "1:2");
  bad->Await("job-started.*hosted_here=true");
  const auto second = Host("second", "1:2");
  int64_t epoch = 0;
  ASSERT_NO_FATAL_FAILURE(KillThreeTimes(*bad, 2, epoch));
  EXPECT_EQ(bad->ExitCode(), kExitShunned) << bad->Output();
  const std::vector<Entry> alone = AwaitEntries(*second, 1, 1, epoch);
  ASSERT_EQ(alone.size(), 1u) << second->Output();
  // The board is another one, and knows all the same.
  const auto again = Host("again", "1:2");
  EXPECT_EQ(again->ExitCode(), kExitShunned) << again->Output();
  LetFinish();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
}

TEST_F(KeelrunShun, WhereTheJobNeedsItItStaysAndThatIsSaid) {
  const auto first = Host("first", "2");
  first->Await("job-started.*hosted_here=true");
  const auto bad = Host("bad", "2");
  int64_t epoch = 0;
  ASSERT_NO_FATAL_FAILURE(KillThreeTimes(*bad, 2, epoch));
  EXPECT_EQ(first->ExitCode(), kExitFailed) << first->Output();
  EXPECT_EQ(bad->ExitCode(), kExitFailed) << bad->Output();
  EXPECT_THAT(first->Output(), HasSubstr("host-unfit"));
  EXPECT_THAT(first->Output(), HasSubstr("It stays, since the job needs 2 hosts"));
  EXPECT_THAT(first->Output(), HasSubstr("3 failures, 2 allowed"));
}

}  // namespace
}  // namespace keel
