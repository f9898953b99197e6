// What `keel top`, `keel log` and `keel plot` show of a real job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "base/json.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/tools/job_hosts.h"
#include "tests/tools/on_terminal.h"
#include "tests/tools/run_keel.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// The terminal as before: the screen of others, with a cursor, where long lines go on below.
constexpr const char* kLeft = "\x1b[?7h\x1b[?25h\x1b[?1049l";

class KeelrunWatched : public ::testing::Test, protected JobHosts {
 protected:
  KeelrunWatched() : JobHosts(2) {}

  // Two workers that train for nothing, and write to files.
  std::unique_ptr<Launched> StartWatched() {
    return StartSurvivor("host", {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2",
                                  "--max-restarts=9", "--notice=none", "--status=0",
                                  "--log-dir=" + folder().File("logs"), "--tee=3"});
  }
  static std::string PageOf(Launched& host) {
    const std::string line = host.Await("status-page url=");
    const size_t begin = line.find("http://");
    return line.substr(begin, line.find(' ', begin) - begin);
  }
};

TEST_F(KeelrunWatched, IsShownByTopUntilItEnds) {
  const auto host = StartWatched();
  const std::string page = PageOf(*host);
  host->Await("^.*rank 0 has counted");
  const Ran text = RunKeel("top " + page);
  EXPECT_EQ(text.exit_code, 0) << text.out;
  EXPECT_THAT(text.out, AllOf(HasSubstr("job job  running"), HasSubstr("epoch 1: 2 workers")));
  EXPECT_EQ(KeelJson("top " + page)["members"][0]["workers"].size(), 2u);

  bool asked = false;
  const OnScreen screen =
      RunOnTerminal(KEEL_BIN_DIR "/keel top " + page, 80, [&](const std::string& seen) {
        if (seen.find("q quit") == std::string::npos || asked) return "";
        asked = true;
        return "hq";
      });
  EXPECT_EQ(screen.exit_code, 0) << screen.text;
  EXPECT_THAT(screen.text, AllOf(HasSubstr("\x1b[?7l"), HasSubstr("job job"), EndsWith(kLeft)));

  LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  const Ran gone = RunKeel("top " + page);
  EXPECT_EQ(gone.exit_code, 3);
  EXPECT_THAT(gone.out, HasSubstr("keel top: nobody answers at 127.0.0.1:"));
}

TEST_F(KeelrunWatched, CtrlCEndsTopAndLeavesTheTerminalAsItWas) {
  const auto host = StartWatched();
  bool asked = false;
  const std::string command = "stty -g; trap : INT; " KEEL_BIN_DIR "/keel top " + PageOf(*host) +
                              "; echo ended with $?; stty -g";
  const OnScreen screen = RunOnTerminal(command, 80, [&](const std::string& seen) {
    if (seen.find("q quit") == std::string::npos || asked) return "";
    asked = true;
    return "\x03";
  });
  EXPECT_THAT(screen.text, HasSubstr("ended with 130"));
  const std::string before = screen.text.substr(0, screen.text.find('\n') + 1);
  EXPECT_THAT(screen.text, EndsWith("\n" + before));
  LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
}

TEST_F(KeelrunWatched, LeavesLogsThatTellOneStory) {
  const auto host = StartWatched();
  SignalPidIn(host->Await("epoch 1 rank 1 of 2"), SIGKILL);
  host->Await("epoch 2 rank");
  LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  WriteFile(folder().File("logs/keelrun.log"), host->Output());
  const Ran ran = RunKeel("log " + folder().File("logs"));
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  // Each of the two lines that every worker writes at its beginning is told once, as its own.
  EXPECT_THAT(ran.out, HasSubstr("worker1    epoch 1 rank 1 of 2"));
  EXPECT_THAT(ran.out, Not(HasSubstr("[default")));
  EXPECT_LT(ran.out.find("info job-started"), ran.out.find("error worker-died rank=1"));
  EXPECT_LT(ran.out.find("error worker-died rank=1"), ran.out.find("info end-decided"));
  const Ran deaths = RunKeel("log " + folder().File("logs") + " --level error --json");
  const auto death = ParseJson(deaths.out);
  ASSERT_OK(death);
  EXPECT_EQ((*death)["fields"]["how"], "killed by signal 9 (SIGKILL)");
}

}  // namespace
}  // namespace keel
