// What the guard promises, shown by running whole test programs that misbehave (harness_victim.cc).
#include "tests/harness/guarded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "elastic/process/process_table.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/ranks.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLimit = 60s;

// The processes that carry the victim's sign in their environment.
std::vector<std::string> AliveWith(const std::string& sign) {
  std::vector<std::string> found;
  const auto all = AllProcesses();
  EXPECT_OK(all);
  for (const ProcessInfo& process : *all) {
    if (process.ended || process.pid == getpid()) continue;
    std::optional<std::string> environment;
    while (!environment) environment = InitialEnvironment(process.pid);
    if (environment->find(sign) == std::string::npos) continue;
    found.push_back(std::to_string(process.pid) + " " + CommandLine(process.pid));
  }
  return found;
}

class Guarded : public ::testing::Test {
 protected:
  std::unique_ptr<Ranks> StartVictim(const std::vector<std::string>& arguments) {
    RanksSpec spec;
    spec.argv = {std::string(KEEL_BIN_DIR) + "/harness_victim"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    // Its own temporary folders lie in ours, so that those of a killed one go, too.
    spec.environment = [this](int) {
      return Environment{{"KEEL_TEST_SIGN", sign_}, {"TMPDIR", folder_.path()}};
    };
    auto ranks = Ranks::Start(spec, folder_);
    EXPECT_OK(ranks);
    return ranks.ok() ? std::move(ranks).value() : nullptr;
  }
  std::unique_ptr<Ranks> StartVictim(const std::string& test) {
    return StartVictim(std::vector<std::string>{"--gtest_filter=Victim." + test});
  }

  const std::string sign_ = "sign-of-" + std::to_string(getpid());
  TempDir folder_;
};

TEST_F(Guarded, APassingTestPasses) {
  const auto victim = StartVictim("Passes");
  ASSERT_NE(victim, nullptr);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, victim->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(0)) << victim->Output(0);
  EXPECT_NE(victim->Stdout(0).find("[  PASSED  ] 1 test"), std::string::npos) << victim->Output(0);
}

TEST_F(Guarded, AFailingTestFails) {
  const auto victim = StartVictim("Fails");
  ASSERT_NE(victim, nullptr);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, victim->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(1)) << victim->Output(0);
}

TEST_F(Guarded, TestsCanBeListed) {
  const auto victim = StartVictim(std::vector<std::string>{"--gtest_list_tests"});
  ASSERT_NE(victim, nullptr);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, victim->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(0)) << victim->Output(0);
  EXPECT_NE(victim->Stdout(0).find("Victim.\n  Passes\n"), std::string::npos) << victim->Output(0);
}

TEST_F(Guarded, AKilledTestProcessLeavesNobody) {
  const auto victim = StartVictim("IsKilledWhileItsRanksRun");
  ASSERT_NE(victim, nullptr);
  ASSERT_OK(victim->AwaitLine(0, "has its ranks", kLimit));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, victim->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(128 + SIGKILL)) << victim->Output(0);
  EXPECT_THAT(AliveWith(sign_), ::testing::IsEmpty());
  EXPECT_NE(victim->Stderr(0).find("killed by signal 9 (SIGKILL)"), std::string::npos)
      << victim->Output(0);
}

TEST_F(Guarded, ARequestToStopReachesTheTestAndLeavesNobody) {
  const auto victim = StartVictim("RunsUntilItIsTold");
  ASSERT_NE(victim, nullptr);
  ASSERT_OK(victim->AwaitLine(0, "has its ranks", kLimit));
  ASSERT_OK(victim->Signal(0, SIGTERM));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, victim->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(128 + SIGTERM)) << victim->Output(0);
  EXPECT_THAT(AliveWith(sign_), ::testing::IsEmpty());
}

TEST_F(Guarded, ALeftoverIsNamedKilledAndFailsTheTest) {
  const auto victim = StartVictim("LeavesAProcessBehind");
  ASSERT_NE(victim, nullptr);
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, victim->Wait(0, kLimit));
  EXPECT_EQ(status, ExitStatus::Exited(1)) << victim->Output(0);
  EXPECT_NE(victim->Stdout(0).find("[  PASSED  ] 1 test"), std::string::npos) << victim->Output(0);
  const auto named = victim->AwaitLine(
      0, Pattern::Regex("left a process behind \\(now killed\\): [0-9]+ sh -c echo up; sleep 1000"),
      kLimit);
  ASSERT_OK(named);
  const pid_t pid = std::stoi(named->substr(named->rfind("): ") + 3));
  EXPECT_EQ(CommandLine(pid), "");
}

TEST_F(Guarded, TheGuardsOwnDeathEndsTestAndRanks) {
  const auto victim = StartVictim("RunsUntilItIsTold");
  ASSERT_NE(victim, nullptr);
  ASSERT_OK_AND_ASSIGN(const std::string line, victim->AwaitLine(0, "has its ranks", kLimit));
  const pid_t test = std::stoi(line.substr(std::string("test process ").size()));
  ASSERT_OK_AND_ASSIGN(const auto all, AllProcesses());
  std::vector<Fd> tied;
  for (const ProcessInfo& process : DescendantsOf(victim->pid(0), all)) {
    if (process.pid == test || process.parent == test) tied.push_back(OpenProcess(process));
  }
  ASSERT_EQ(tied.size(), 2u);
  ASSERT_OK(victim->Signal(0, SIGKILL));
  EXPECT_TRUE(WaitUntilEnded(tied, RealClock().Monotonic() + kLimit));
}

}  // namespace
}  // namespace keel
