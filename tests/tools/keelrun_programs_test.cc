// Programs that cannot be started: each is named with the reason, and no other host hears of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/free_port.h"
#include "tests/support/file_text.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

struct BadProgram {
  std::vector<std::string> words;
  std::string said;
};

std::vector<BadProgram> BadPrograms(const TempDir& folder) {
  const auto file = [&](const std::string& name, const std::string& text, int mode) {
    WriteFile(folder.File(name), text, mode);
    return folder.File(name);
  };
  const std::string plain = file("plain", "#!/bin/sh\n", 0644);
  const std::string script = file("script", "#!/no/such/shell\n", 0755);
  return {
      {{"--no-python", folder.File("nothing")}, "program not found: there is no '"},
      {{"--no-python", "no-such-tool"}, "'no-such-tool' is in no folder of PATH"},
      {{"--no-python", plain}, "'" + plain + "' is not executable: permission denied (chmod +x"},
      {{"--no-python", folder.path()}, "'" + folder.path() + "' is a folder, not a program"},
      {{"--no-python", script}, "its first line names '/no/such/shell', which is not there"},
      {{"--no-python", file("dos", "#!/bin/sh\r\n", 0755)}, "ends with a carriage return"},
      {{folder.File("nothing.py")}, "script not found: '" + folder.File("nothing.py") + "'"},
  };
}

TEST(KeelrunPrograms, OneThatCannotBeStartedIsNamedBeforeAnyoneIsWaitedFor) {
  TempDir folder;
  for (const BadProgram& bad : BadPrograms(folder)) {
    // Would wait for its second host, and end with another code.
    std::vector<std::string> words = {"--nnodes=2", "--rdzv-backend=c10d",
                                      "--rdzv-endpoint=127.0.0.1:" + std::to_string(FreePort()),
                                      "--rdzv-conf=join_timeout=1"};
    words.insert(words.end(), bad.words.begin(), bad.words.end());
    Launched job(folder, "job", words);
    EXPECT_EQ(job.ExitCode(), 1) << job.Output();
    EXPECT_THAT(job.Output(), HasSubstr(bad.said));
    EXPECT_EQ(job.Count("^usage|epoch"), 0) << job.Output();
  }
}

// A host that joins breaks an epoch of foreign workers, so one that cannot start any must not join.
TEST(KeelrunPrograms, AHostWhoseProgramCannotBeStartedDisturbsNobody) {
  JobHosts hosts;
  const auto first =
      hosts.StartForeign("first", {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2"});
  first->Await("^up group=0 rank=0 of=1$");
  TempDir folder;
  for (const BadProgram& bad : BadPrograms(folder)) {
    const auto other = hosts.Start("other", {"--nnodes=1:2"}, bad.words);
    EXPECT_EQ(other->ExitCode(), 1) << other->Output();
    EXPECT_THAT(other->Output(), HasSubstr(bad.said));
  }
  hosts.LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(first->Count("^up"), 1) << first->Output();
}

// Found out only by starting it; each attempt spends a restart.
TEST(KeelrunPrograms, AFileThatIsNoProgramIsTriedAsOftenAsAllowed) {
  TempDir folder;
  WriteFile(folder.File("words"), "just words\n", 0755);
  for (int round = 0; round < 10; ++round) {
    Launched job(folder, "job" + std::to_string(round),
                 {"--standalone", "--nproc-per-node=2", "--max-restarts=1", "--no-python",
                  folder.File("words")});
    EXPECT_EQ(job.ExitCode(), 1) << job.Output();
    EXPECT_THAT(job.Output(), HasSubstr("not a program for this machine"));
    EXPECT_THAT(job.Output(), HasSubstr("2 failures, 1 allowed"));
    EXPECT_EQ(job.Count(" epoch epoch=2 "), 1) << job.Output();
    EXPECT_EQ(job.Count(" epoch epoch=3 "), 0) << job.Output();
  }
}

}  // namespace
}  // namespace keel
