// The job's token with real launchers: who has it comes, and who has not is refused at the door.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "elastic/launch/token.h"
#include "elastic/protocol/exit_codes.h"
#include "tests/support/file_text.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kJobToken = "0f1e2d3c4b5a69788796";

class KeelrunToken : public ::testing::Test, protected JobHosts {
 protected:
  std::unique_ptr<Launched> StartWith(const std::string& name, const std::string& token,
                                      const std::string& hosts = "--nnodes=1:3") {
    return StartSurvivor(name, {hosts, "--max-restarts=2", "--rdzv-conf=last_call_timeout=1"},
                         {{kTokenVariable, token}});
  }
  // A launcher of the same job that nobody lets in.
  void ExpectRefused(Launched& stranger, const std::string& why) {
    EXPECT_EQ(stranger.ExitCode(), kExitRefused) << stranger.Output();
    EXPECT_THAT(stranger.Output(), HasSubstr(why));
    EXPECT_EQ(stranger.Count("^epoch "), 0);
  }
};

TEST_F(KeelrunToken, WhoHasItComesAndWhoHasNotIsRefused) {
  const auto first = StartWith("first", kJobToken, "--nnodes=2");
  WriteFile(folder().File("token"), kJobToken + "\n");
  const auto second = StartSurvivor(
      "second", {"--nnodes=2", "--token-file=" + folder().File("token")});
  ASSERT_EQ(AwaitEntries(*first, 2, 1).size(), 1u);
  ExpectRefused(*StartSurvivor("none", {"--nnodes=2"}), "closed to launchers without its token");
  ExpectRefused(*StartWith("other", kJobToken + "0", "--nnodes=2"),
                "not sealed by the token that this launcher has");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
  EXPECT_THAT(first->Output(), Not(HasSubstr("stranger"))) << "they have refused themselves";
}

TEST_F(KeelrunToken, WhoHasOneIsRefusedByAJobThatHasNone) {
  const auto first = StartSurvivor("first", {"--nnodes=1"});
  ASSERT_EQ(AwaitEntries(*first, 1, 1).size(), 1u);
  ExpectRefused(*StartWith("other", kJobToken), "not sealed by the token that this launcher has");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
}

TEST_F(KeelrunToken, TheRoleGoesOnToAnotherHost) {
  const auto first = StartWith("first", kJobToken);
  first->Await("job-started.*hosted_here=true");
  const auto second = StartWith("second", kJobToken);
  const std::vector<Entry> both = AwaitEntries(*second, 2, 1);
  ASSERT_EQ(both.size(), 1u);
  first->Signal(SIGTERM);
  ASSERT_EQ(AwaitEntries(*second, 1, 1, both[0].epoch).size(), 1u);
  LetFinish();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
  EXPECT_THAT(first->Output() + second->Output(), Not(HasSubstr("stranger")));
}

TEST_F(KeelrunToken, NothingThatALauncherStartsInheritsIt) {
  const std::string check = "--health-check=env | grep -c 0f1e2d && exit 3; true";
  const auto host = Start("host", {"--nnodes=1", check},
                          {"--no-python", "sh", "-c", "env | grep -c 0f1e2d || echo clean"},
                          {{kTokenVariable, kJobToken}});
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  EXPECT_EQ(host->Count("^clean"), 1) << host->Output();
}

TEST_F(KeelrunToken, ATokenThatIsNoneIsRefusedBeforeAnythingStarts) {
  const auto problem = [&](const std::string& name, std::vector<std::string> options,
                           const std::string& token) {
    const auto host = StartSurvivor(name, std::move(options), {{kTokenVariable, token}});
    EXPECT_EQ(host->ExitCode(), kExitFailed) << host->Output();
    return host->Output();
  };
  const std::string file = "--token-file=" + folder().File("token");
  EXPECT_THAT(problem("short", {}, "0123"), HasSubstr("the job's token has 4 characters"));
  for (const char* blank : {"", " \n"}) {
    EXPECT_THAT(problem("blank", {}, blank),
                HasSubstr("the job's token (KEELRUN_TOKEN) is empty: give one, or unset"));
  }
  EXPECT_THAT(problem("nameless", {"--token-file="}, kJobToken), HasSubstr("it names no file"));
  EXPECT_THAT(problem("missing", {file}, ""), HasSubstr("cannot be read: is it there"));
  WriteFile(folder().File("token"), "\n");
  EXPECT_THAT(problem("empty", {file}, ""), HasSubstr("is empty"));
  WriteFile(folder().File("token"), kJobToken);
  EXPECT_THAT(problem("twice", {file}, kJobToken), HasSubstr("is given twice"));
}

}  // namespace
}  // namespace keel
