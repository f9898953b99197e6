// What log lines look like, and that nothing that happens to them harms the process.
#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "tests/support/garbage.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    clock_.Advance(1795249800123ms);
    SetLogClock(clock_);
    LogToCallback([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~LogTest() override {
    SetLogClock(RealClock());
    SetLogLevel(LogLevel::kInfo);
    SetLogFormat(LogFormat::kText);
    LogToStderr();
  }
  std::string Last() const { return lines_.empty() ? "nothing" : lines_.back(); }

  ManualClock clock_;
  std::vector<std::string> lines_;
};

// The value at the front of `text`, unquoted; takes it off.
std::string TakeValue(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    const size_t end = std::min(text.find(' '), text.size());
    value = text.substr(0, end);
    text.remove_prefix(end);
    return value;
  }
  text.remove_prefix(1);
  while (!text.empty() && text.front() != '"') {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      c = text.front();
      text.remove_prefix(1);
      if (c == 'n') c = '\n';
      if (c == 'r') c = '\r';
      if (c == 't') c = '\t';
      if (c == 'x') {
        c = static_cast<char>(std::stoi(std::string(text.substr(0, 2)), nullptr, 16));
        text.remove_prefix(2);
      }
    }
    value += c;
  }
  text.remove_prefix(std::min<size_t>(1, text.size()));
  return value;
}

// A text line's fields, as any reader of our logs would take them apart.
std::map<std::string, std::string> FieldsOf(std::string_view line) {
  std::map<std::string, std::string> fields;
  for (int word = 0; word < 3; ++word) line.remove_prefix(line.find_first_of(" \n") + 1);
  while (!line.empty()) {
    const size_t equals = line.find('=');
    const std::string name(line.substr(0, equals));
    line.remove_prefix(equals + 1);
    if (line.ends_with('\n')) line.remove_suffix(1);
    fields[name] = TakeValue(line);
    line.remove_prefix(std::min<size_t>(1, line.size()));
  }
  return fields;
}

// Sends the log to stderr, which is that file as long as this lives.
class StderrInFile {
 public:
  explicit StderrInFile(const std::string& path) : before_(dup(STDERR_FILENO)) {
    const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    KEEL_CHECK(file >= 0, path);
    dup2(file, STDERR_FILENO);
    close(file);
    LogToStderr();
  }
  ~StderrInFile() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  StderrInFile(const StderrInFile&) = delete;
  StderrInFile& operator=(const StderrInFile&) = delete;

 private:
  const int before_;
};

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(LogTest, TextIsOneLineOfKeysAndValues) {
  LogInfo("worker-died", {{"rank", 3}, {"reason", "signal 9"}});
  EXPECT_EQ(Last(), "2026-11-21T08:30:00.123Z info worker-died rank=3 reason=\"signal 9\"\n");
}

TEST_F(LogTest, JsonIsOneObjectALine) {
  SetLogFormat(LogFormat::kJson);
  LogWarn("worker-died", {{"rank", 3}, {"reason", "a\n\"b\""}});
  EXPECT_EQ(Last(),
            "{\"time\":\"2026-11-21T08:30:00.123Z\",\"level\":\"warn\",\"event\":\"worker-died\","
            "\"rank\":3,\"reason\":\"a\\n\\\"b\\\"\"}\n");
  LogWarn("bare");
  EXPECT_EQ(*Field<std::string>(*ParseJson(Last()), "event"), "bare");
}

TEST_F(LogTest, TakesEveryKindOfValue) {
  const std::string text = "x";
  LogInfo("e", {{"i", -1L}, {"u", UINT64_MAX}, {"d", 0.1}, {"b", true}, {"s", text},
                {"null", static_cast<const char*>(nullptr)}});
  EXPECT_THAT(Last(), HasSubstr("i=-1 u=18446744073709551615 d=0.1 b=true s=x null=(null)\n"));
  SetLogFormat(LogFormat::kJson);
  LogInfo("e", {{"d", std::numeric_limits<double>::quiet_NaN()}, {"b", false}, {"u", 1u}});
  EXPECT_THAT(Last(), HasSubstr("\"d\":\"nan\",\"b\":false,\"u\":1}\n"));
}

TEST_F(LogTest, LevelsBelowTheOneSetAreNotWritten) {
  LogDebug("hidden");
  EXPECT_TRUE(lines_.empty());
  SetLogLevel(LogLevel::kError);
  LogWarn("hidden");
  EXPECT_TRUE(lines_.empty());
  LogError("shown");
  EXPECT_THAT(Last(), HasSubstr(" error shown\n"));
  SetLogLevel(LogLevel::kDebug);
  LogDebug("shown");
  EXPECT_THAT(Last(), HasSubstr(" debug shown\n"));
}

TEST_F(LogTest, LevelsAndFormatsAreReadByName) {
  EXPECT_EQ(*ParseLogLevel("warn"), LogLevel::kWarn);
  EXPECT_EQ(*ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_THAT(ParseLogLevel("loud").error().message, HasSubstr("'loud' is not a log level"));
  EXPECT_FALSE(ParseLogFormat("xml").ok());
}

TEST_F(LogTest, NamesThatWouldMisleadAreChanged) {
  LogInfo("two words", {{"time", 1}, {"a b", 2}, {"a=b", 3}, {"", 4}});
  EXPECT_THAT(Last(), HasSubstr("info two-words time_=1 a-b=2 a-b_=3 -=4\n"));
  SetLogFormat(LogFormat::kJson);
  LogInfo("e", {{"event", 1}, {"x", 2}, {"x", 3}});
  EXPECT_TRUE(ParseJson(Last()).ok()) << Last();
}

TEST_F(LogTest, AnyValueReadsBackFromItsLine) {
  Garbage garbage(20261121);
  for (int i = 0; i < 2000; ++i) {
    const std::string first = garbage.Bytes(20), second = garbage.Bytes(5);
    LogInfo("e", {{"a", first}, {"b", second}});
    ASSERT_EQ(Last().find('\n'), Last().size() - 1) << garbage.Where(i);
    const auto fields = FieldsOf(Last());
    ASSERT_EQ(fields.size(), 2u) << garbage.Where(i) << Last();
    ASSERT_EQ(fields.at("a"), first) << garbage.Where(i) << Last();
    ASSERT_EQ(fields.at("b"), second) << garbage.Where(i) << Last();
  }
}

TEST_F(LogTest, AnyJsonLineIsJson) {
  SetLogFormat(LogFormat::kJson);
  Garbage garbage(20261121);
  for (int i = 0; i < 2000; ++i) {
    const std::string name = garbage.Bytes(3), value = garbage.Bytes(20);
    LogInfo(name, {{name, value}, {name, value}});
    ASSERT_TRUE(ParseJson(Last()).ok()) << garbage.Where(i) << Last();
    ASSERT_EQ(Last().find('\n'), Last().size() - 1) << garbage.Where(i);
  }
}

TEST_F(LogTest, GoesToStderrWithoutColourWhenThatIsNoTerminal) {
  ::testing::internal::CaptureStderr();
  LogToStderr();
  LogError("here");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "2026-11-21T08:30:00.123Z error here\n");
}

// What appears on a terminal that is stderr while `log` runs.
std::string OnTerminal(const std::function<void()>& log) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_EQ(grantpt(terminal), 0);
  EXPECT_EQ(unlockpt(terminal), 0);
  const int other_side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  const int stderr_before = dup(STDERR_FILENO);
  dup2(other_side, STDERR_FILENO);
  log();
  dup2(stderr_before, STDERR_FILENO);
  std::array<char, 512> text{};
  const ssize_t size = read(terminal, text.data(), text.size());
  for (const int descriptor : {terminal, other_side, stderr_before}) close(descriptor);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

TEST_F(LogTest, ColoursTheLevelOnATerminalInTextOnly) {
  const std::string text = OnTerminal([] {
    LogToStderr();
    LogError("here");
  });
  EXPECT_THAT(text, HasSubstr("\x1b[31merror\x1b[0m here"));
  const std::string json = OnTerminal([] {
    SetLogFormat(LogFormat::kJson);
    LogToStderr();
    LogError("here");
  });
  EXPECT_THAT(json, HasSubstr("\"level\":\"error\""));
  EXPECT_EQ(json.find('\x1b'), std::string::npos);
}

TEST_F(LogTest, AFullDiskCostsOnlyTheLine) {
  const uint64_t before = LogLinesLost();
  const StderrInFile full("/dev/full");
  errno = 1234;
  LogInfo("lost");
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(LogLinesLost(), before + 1);
}

TEST_F(LogTest, AClosedStderrCostsOnlyTheLine) {
  const uint64_t before = LogLinesLost();
  const int stderr_before = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  LogToStderr();
  LogInfo("lost");
  dup2(stderr_before, STDERR_FILENO);
  close(stderr_before);
  EXPECT_EQ(LogLinesLost(), before + 1);
}

TEST_F(LogTest, AReaderThatIsGoneDoesNotKillUs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const auto handler_before = std::signal(SIGPIPE, SIG_DFL);
  const StderrInFile broken("/dev/fd/" + std::to_string(ends[1]));
  close(ends[0]);
  close(ends[1]);
  const uint64_t before = LogLinesLost();
  LogInfo("lost");
  LogInfo("lost");
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  EXPECT_EQ(LogLinesLost(), before + 2);
  std::signal(SIGPIPE, handler_before);
}

TEST_F(LogTest, ALineCutShortIsEndedBeforeTheNext) {
  const TempDir folder;
  const std::string path = folder.File("log");
  const uint64_t before = LogLinesLost();
  const StderrInFile file_as_stderr(path);
  rlimit limit_before{};
  getrlimit(RLIMIT_FSIZE, &limit_before);
  rlimit limit = limit_before;
  limit.rlim_cur = 30;
  setrlimit(RLIMIT_FSIZE, &limit);
  LogInfo("cut-short");  // SIGXFSZ would kill here
  setrlimit(RLIMIT_FSIZE, &limit_before);
  LogInfo("whole");
  EXPECT_EQ(FileText(path),
            "2026-11-21T08:30:00.123Z info \n"
            "2026-11-21T08:30:00.123Z info whole\n");
  EXPECT_EQ(LogLinesLost(), before + 1);
}

TEST_F(LogTest, ACallbackThatThrowsCostsOnlyTheLine) {
  const uint64_t before = LogLinesLost();
  LogToCallback([](std::string_view) { throw std::runtime_error("no"); });
  LogInfo("lost");
  EXPECT_EQ(LogLinesLost(), before + 1);
}

TEST_F(LogTest, ThreadsMayLogAndChangeSettingsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        LogInfo("tick", {{"thread", t}, {"i", i}});
        if (i % 10 == 0) SetLogFormat(i % 20 == 0 ? LogFormat::kJson : LogFormat::kText);
        if (i % 50 == 0) SetLogLevel(LogLevel::kDebug);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 800u);
  for (const std::string& line : lines_) EXPECT_TRUE(line.ends_with("\n"));
}

// Forks `count` children that each run `body` and end; returns whether all of them ended well.
bool InChildren(int count, const std::function<void(int)>& body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      body(i);
      _exit(0);
    }
    children.push_back(child);
  }
  bool all_well = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    all_well = all_well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return all_well;
}

TEST_F(LogTest, LinesOfSeveralProcessesDoNotMix) {
  const TempDir folder;
  const std::string path = folder.File("log");
  const StderrInFile file_as_stderr(path);
  const std::string filler(3000, 'x');
  ASSERT_TRUE(InChildren(4, [&](int child) {
    for (int i = 0; i < 100; ++i) LogInfo("tick", {{"child", child}, {"filler", filler}});
  }));
  std::ifstream file(path);
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    ASSERT_THAT(line, ::testing::MatchesRegex(".* info tick child=[0-3] filler=x+"));
    ASSERT_TRUE(line.ends_with("=" + filler));
  }
  EXPECT_EQ(count, 400);
}

TEST_F(LogTest, AChildForkedWhileAnotherThreadLogsCanLog) {
  const StderrInFile nowhere("/dev/null");
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) LogInfo("busy");
  });
  EXPECT_TRUE(InChildren(100, [](int) { LogInfo("child"); }));
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace keel
