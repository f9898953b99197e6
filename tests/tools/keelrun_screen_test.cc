// What a user sees of a job on a terminal: the workers' lines, the log, and the status line below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/on_terminal.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kLines = 400;
constexpr const char* kWipe = "\r\x1b[K";

// What a terminal makes of it where no status wraps: the lines that stay, and each status that was
// there for a while.
struct Seen {
  std::string lines;
  std::vector<std::string> statuses;   // the last one is what is left at the end
};

Seen See(const std::string& text) {
  Seen seen;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(kWipe, at), text.size());
    const std::string piece = text.substr(at, end - at);
    const size_t line_end = piece.rfind('\n');
    const size_t status = line_end == std::string::npos ? 0 : line_end + 1;
    seen.lines += piece.substr(0, status);
    seen.statuses.push_back(piece.substr(status));
    if (end == text.size()) break;
    at = end + std::string(kWipe).size();
  }
  return seen;
}

class KeelrunScreen : public ::testing::Test {
 protected:
  // Two workers that write lines as fast as they can, to both streams.
  std::string Command(const std::string& options) {
    const std::string script = folder_.File("talk.sh");
    WriteFile(script, "i=0; while [ $i -lt " + std::to_string(kLines) +
                          " ]; do echo \"out $RANK $i.\"; echo \"err $RANK $i.\" >&2; "
                          "i=$((i+1)); done\n");
    return KEEL_BIN_DIR "/keelrun --standalone --nproc-per-node=2 --log-dir=" +
           folder_.File("logs") + " " + options + " --no-python sh " + script;
  }
  // Each line of each worker is there once, whole, on a line of its own.
  static void ExpectAllLines(const std::string& lines, const std::string& prefix) {
    std::multiset<std::string> there;
    for (const std::string& line : SplitList(lines, '\n')) there.insert(line);
    for (int rank = 0; rank < 2; ++rank) {
      const std::string begin = prefix.empty() ? "" : "[default" + std::to_string(rank) + "]:";
      for (int i = 0; i < kLines; ++i) {
        const std::string end = " " + std::to_string(rank) + " " + std::to_string(i) + ".";
        EXPECT_EQ(there.count(begin + "out" + end), 1u) << begin + "out" + end;
        EXPECT_EQ(there.count(begin + "err" + end), 1u) << begin + "err" + end;
      }
    }
  }

  TempDir folder_;
};

TEST_F(KeelrunScreen, TheStatusLineStaysBelowAndDamagesNoLine) {
  const OnScreen screen = RunOnTerminal(Command("--tee=3"), 100);
  EXPECT_EQ(screen.exit_code, 0) << screen.text;
  const Seen seen = See(screen.text);
  ExpectAllLines(seen.lines, "[default");
  EXPECT_THAT(seen.lines, Not(HasSubstr("\x1b[K")));
  EXPECT_THAT(seen.lines, HasSubstr(" info epoch "));
  EXPECT_THAT(seen.statuses, testing::Contains("waiting for the first epoch"));
  EXPECT_EQ(seen.statuses.back(), "") << "it is gone at the end";
  const std::multiset<std::string> lines = [&] {
    std::multiset<std::string> split;
    for (const std::string& line : SplitList(seen.lines, '\n')) split.insert(line);
    return split;
  }();
  EXPECT_EQ(lines.count("waiting for the first epoch"), 0u);
}

TEST_F(KeelrunScreen, TheStatusLineFollowsTheJob) {
  // Until the status has been drawn anew, a second later at most.
  const OnScreen screen = RunOnTerminal(
      KEEL_BIN_DIR "/keelrun --standalone --redirects=3 --log-dir=" + folder_.File("logs") +
          " --no-python sleep 6",
      100);
  EXPECT_EQ(screen.exit_code, 0) << screen.text;
  EXPECT_THAT(See(screen.text).statuses, testing::Contains("epoch 1: 1 worker on 1 host"));
}

TEST_F(KeelrunScreen, OnANarrowTerminalTheStatusLineDoesNotWrap) {
  const OnScreen screen = RunOnTerminal(Command("--tee=3"), 20);
  EXPECT_EQ(screen.exit_code, 0) << screen.text;
  const Seen seen = See(screen.text);
  ExpectAllLines(seen.lines, "[default");
  for (const std::string& status : seen.statuses) EXPECT_LT(status.size(), 20u) << status;
  EXPECT_THAT(seen.statuses, testing::Contains("waiting for the fir"));
}

// Workers that have the terminal themselves would write into the line.
TEST_F(KeelrunScreen, WhereWorkersWriteToTheTerminalThereIsNoStatusLine) {
  const OnScreen screen = RunOnTerminal(Command(""), 100);
  EXPECT_EQ(screen.exit_code, 0) << screen.text;
  ExpectAllLines(screen.text, "");
  EXPECT_THAT(screen.text, Not(HasSubstr("\x1b[K")));
}

TEST_F(KeelrunScreen, ProgramsThatReadUsGetNoStatusLine) {
  const OnScreen json = RunOnTerminal(Command("--tee=3 --log-format=json"), 100);
  EXPECT_EQ(json.exit_code, 0) << json.text;
  ExpectAllLines(json.text, "[default");
  EXPECT_THAT(json.text, Not(HasSubstr("\x1b")));
  const OnScreen dumb = RunOnTerminal("TERM=dumb " + Command("--tee=3"), 100);
  EXPECT_THAT(dumb.text, Not(HasSubstr("\x1b[K")));
}

TEST_F(KeelrunScreen, WhereStderrIsNoTerminalThereIsNoStatusLine) {
  const std::string log = folder_.File("stderr");
  const OnScreen screen = RunOnTerminal(Command("--tee=3") + " 2> " + log, 100);
  EXPECT_EQ(screen.exit_code, 0) << screen.text;
  ExpectAllLines(screen.text + ReadFile(log), "[default");
  EXPECT_THAT(screen.text + ReadFile(log), Not(HasSubstr("\x1b[K")));
}

size_t CountOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// A user who types Ctrl-C once the workers are up, and again, up to `most` times, whenever the
// launcher has told of the one before, until it kills. (Nothing else is on the terminal: exec.)
Typist Interrupter(size_t most) {
  return [most, typed = size_t{0}](const std::string& seen) mutable -> std::string {
    const size_t told = CountOf("signal signal=SIGINT", See(seen).lines);
    const bool is_up = CountOf("worker is up", seen) > 0 && CountOf("killing-all", seen) == 0;
    if (!is_up || typed == most || typed > told) return "";
    ++typed;
    return "\x03";
  };
}

TEST_F(KeelrunScreen, OneCtrlCStopsTheJobAndIsOneEvent) {
  const OnScreen screen = RunOnTerminal(
      "exec " KEEL_BIN_DIR "/keelrun --standalone --tee=3 --log-dir=" + folder_.File("logs") +
          " --no-python sh -c \"trap 'sleep 2; exit 0' INT; echo worker is up; "
          "while :; do sleep 0.05; done\"",
      200, Interrupter(1));
  EXPECT_EQ(screen.exit_code, 75) << screen.text;
  EXPECT_THAT(screen.text, HasSubstr(", 1 epoch, 1 event\n"));
  EXPECT_EQ(CountOf("epoch 1: SIGINT to the launcher", screen.text), 1u) << screen.text;
  // It stays there while the worker takes its time.
  EXPECT_THAT(See(screen.text).statuses,
              testing::Contains("stopping (SIGINT), epoch 1: 1 worker on 1 host"));
}

TEST_F(KeelrunScreen, CtrlCTwiceAtOnceKills) {
  const OnScreen screen = RunOnTerminal(
      "exec " KEEL_BIN_DIR "/keelrun --standalone --shutdown-timeout=1000 --no-python sh -c "
                   "\"trap '' INT TERM; echo worker is up; while :; do sleep 0.05; done\"",
      200, Interrupter(10));
  EXPECT_EQ(screen.exit_code, 77) << screen.text;
  EXPECT_THAT(screen.text, HasSubstr("killing-all"));
  EXPECT_THAT(screen.text, HasSubstr("epoch 1: interrupted twice, so everything was killed\n"));
}

// Then only stderr's lines pass above it.
TEST_F(KeelrunScreen, WhereStdoutGoesElsewhereTheStatusLineIsOnTheTerminalAlone) {
  const std::string out = folder_.File("stdout");
  const OnScreen screen = RunOnTerminal(Command("--tee=3") + " > " + out, 100);
  EXPECT_EQ(screen.exit_code, 0) << screen.text;
  const Seen seen = See(screen.text);
  ExpectAllLines(seen.lines + ReadFile(out), "[default");
  EXPECT_THAT(seen.statuses, testing::Contains("waiting for the first epoch"));
  EXPECT_THAT(ReadFile(out), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace keel
