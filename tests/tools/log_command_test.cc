// `keel log` over folders that change while it looks at them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/faulty_files.h"
#include "base/fd.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"
#include "tools/keel/commands.h"
#include "tools/keel/output_stream.h"

namespace keel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Does something at each look, in place of waiting for it.
class LookClock : public Clock {
 public:
  explicit LookClock(std::function<void(int look)> at_look) : at_look_(std::move(at_look)) {}
  TimePoint Monotonic() override { return now_; }
  int64_t WallNanos() override { return 1'795'915'900'000'000'000 + now_.since_start.count(); }
  void SleepUntil(TimePoint when) override {
    now_ = when;
    at_look_(++looks_);
  }

 private:
  const std::function<void(int)> at_look_;
  TimePoint now_{};
  int looks_ = 0;
};

class KeelLog : public testing::Test {
 protected:
  void Put(const std::string& name, const std::string& text) {
    for (size_t at = name.find('/'); at != name.npos; at = name.find('/', at + 1)) {
      (void)::mkdir(At(name.substr(0, at)).c_str(), 0755);
    }
    WriteFile(At(name), text);
  }
  void Move(const std::string& from, const std::string& to) {
    ASSERT_OK(files_.Rename(At(from), At(to)));
  }
  void Link(const std::string& name, const std::string& to) {
    ASSERT_EQ(::symlink(to.c_str(), At(name).c_str()), 0);
  }
  std::string At(const std::string& name) { return folder_.File(name); }

  // The lines without their times. With `at_look` it follows, for a dozen looks.
  std::vector<std::string> Told(std::vector<std::string> arguments,
                                std::function<void(int look)> at_look = nullptr) {
    bool is_over = false;
    LookClock clock([&](int look) {
      at_look(look);
      is_over = look >= 12;
      if (is_over) WriteFile(At("end.log"), "end\n");
    });
    std::string text;
    const World world{files_, clock, Paint(false), false, [&](std::string_view more) -> Status {
                        if (is_over) return Error{Code::kPeerLost, "nobody reads it"};
                        text += more;
                        return Ok();
                      }};
    if (at_look) {
      arguments.push_back("--follow");
      arguments.push_back(At("end.log"));
      WriteFile(At("end.log"), "");
    }
    OptionInputs inputs;
    inputs.arguments = arguments;
    const auto options = ParseOptions(LogTable(), inputs);
    EXPECT_OK(options);
    const auto outcome = RunLog(world, *options);
    EXPECT_OK(outcome);
    exit_code_ = outcome.ok() ? outcome->exit_code : -1;
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      lines.push_back(text.substr(at + 26, end - at - 26));
      at = end + 1;
    }
    return lines;
  }

  TempDir folder_;
  PosixFiles disk_;
  FaultyFiles files_{disk_};
  int exit_code_ = 0;
};

TEST_F(KeelLog, TellsTheTracebacksOfWorkers) {
  Put("logs/job_1234abcd/attempt_0/0/stderr.log", "[rank0]: Traceback\n[rank0]:[W1129] bad\n");
  Put("logs/job_1234abcd/attempt_0/0/stdout.log", "[default0]:as it came\n");
  Put("logs/keelrun.log", "[default0]:[rank0]: Traceback\n[rank0]: of nobody\n");
  const auto told = Told({At("logs")});
  EXPECT_THAT(told, testing::UnorderedElementsAre(
                        "worker0  [rank0]: Traceback", "worker0  [rank0]:[W1129] bad",
                        "worker0  [default0]:as it came", "keelrun  [rank0]: of nobody"));
}

TEST_F(KeelLog, TellsHostsApart) {
  Put("node0/logs/keelrun.log", "zero\n");
  Put("node1/logs/keelrun.log", "one\n");
  EXPECT_THAT(Told({At("node0/logs"), At("node1/logs"), "--host", "node1"}),
              ElementsAre("node1/keelrun  one"));
  EXPECT_THAT(Told({At("node0/logs/keelrun.log"), At("node1/logs/keelrun.log")}),
              testing::UnorderedElementsAre("node0/keelrun  zero", "node1/keelrun  one"));
}

TEST_F(KeelLog, TellsEveryLineOnceWhereverLinksLead) {
  Put("logs/job/train.log", "line\n");
  Link("logs/aaa", "job");
  Link("logs/self", ".");
  Link("logs/job/up", "..");
  Link("logs/job/again", "../self/job");
  Link("logs/job/a.log", "train.log");
  EXPECT_THAT(Told({At("logs"), At("logs/job")}), ElementsAre("logs/job/train  line"));
}

TEST_F(KeelLog, TellsNothingTwiceWhenLogsAreRotated) {
  Put("logs/a.log.1", "oldest, and longer\n");
  Put("logs/a.log", "old\n");
  const auto told = Told({At("logs")}, [&](int look) {
    if (look != 2) return;
    Move("logs/a.log.1", "logs/a.log.2");
    Move("logs/a.log", "logs/a.log.1");
    Put("logs/a.log", "newer\n");
  });
  EXPECT_THAT(told, testing::UnorderedElementsAre("logs/a  oldest, and longer",
                                                  "logs/a  old", "logs/a  newer"));
}

TEST_F(KeelLog, FindsLogsThatEndInANumberWhileItFollows) {
  Put("logs/a.log", "old\n");
  const auto told = Told({At("logs")}, [&](int look) {
    if (look == 2) Put("logs/rank.log.3", "new\n");
    if (look == 7) Put("logs/rank.log.3", "new\nmore\n");
  });
  EXPECT_THAT(told, ElementsAre("logs/a  old", "logs/rank.3  new", "logs/rank.3  more"));
}

TEST_F(KeelLog, SaysWhatItCannotReadWhateverTheFilters) {
  Put("logs/a.log", "line\n");
  Put("logs/b.log", "line\n");
  files_.Plan({.op = FileOp::kOpen, .path_part = "b.log", .lasting = true});
  const auto told = Told({At("logs"), "--level", "error", "--local-rank", "3"});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr("log-unreadable"));
  EXPECT_EQ(exit_code_, kExitNo);
}

TEST_F(KeelLog, ReadsOnWhereALogCouldNotBeReadForAMoment) {
  Put("logs/a.log", "old\n");
  const auto told = Told({At("logs")}, [&](int look) {
    if (look == 2) {
      for (int call = 1; call <= 2; ++call) {
        files_.Plan({.at_call = call, .op = FileOp::kReadAt, .path_part = "a.log"});
      }
    }
    if (look == 6) Put("logs/a.log", "old\nmore\n");
  });
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0], "logs/a  old");
  EXPECT_THAT(told[1], HasSubstr("log-unreadable"));
  EXPECT_EQ(told[2], "logs/a  more");
}

TEST_F(KeelLog, FollowsOnlyAsLongAsSomebodyReads) {
  Put("a.log", "line\n");
  int rests = 0;
  std::string text;
  LookClock clock([](int) { FAIL() << "it sleeps, whoever reads"; });
  World world{files_, clock, Paint(false), false, [&](std::string_view more) -> Status {
                text += more;
                return Ok();
              }};
  world.rest = [&](Duration) -> Status {
    if (++rests < 3) return Ok();
    return Error{Code::kPeerLost, "nobody reads it"};
  };
  OptionInputs inputs;
  inputs.arguments = {At("a.log"), "-f"};
  const auto options = ParseOptions(LogTable(), inputs);
  ASSERT_OK(options);
  EXPECT_OK(RunLog(world, *options));
  EXPECT_EQ(rests, 3);
  EXPECT_THAT(text, HasSubstr("a  line\n"));
}

TEST(RestWhileRead, EndsAtOnceWhereNobodyReads) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const Fd writes(ends[1]);
  {
    const Fd reads(ends[0]);
    EXPECT_OK(RestWhileRead(writes.number(), std::chrono::milliseconds(1), "the pipe"));
  }
  const auto told = RestWhileRead(writes.number(), std::chrono::minutes(10), "the pipe");
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().code, Code::kPeerLost);
}

// It holds 4 KiB, and so is full again and again.
TEST(WriteToDescriptor, WaitsForTheReaderOfAPipeThatSomebodyMadeNonBlocking) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  const Fd reads(ends[0]);
  ASSERT_EQ(::fcntl(reads.number(), F_SETFL, 0), 0);
  ASSERT_GT(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  std::string arrived;
  std::thread reader([&] {
    char piece[1000];
    for (ssize_t got; (got = ::read(reads.number(), piece, sizeof piece)) > 0;) {
      arrived.append(piece, static_cast<size_t>(got));
    }
  });
  {
    const Fd writes(ends[1]);
    EXPECT_OK(WriteToDescriptor(writes.number(), text, "the pipe"));
  }
  reader.join();
  EXPECT_TRUE(arrived == text) << arrived.size() << " of " << text.size() << " bytes";
}

TEST_F(KeelLog, FollowsOnWhereADirectoryCannotBeListedForAWhile) {
  Put("logs/a.log", "old\n");
  Put("more/b.log", "other\n");
  const auto told = Told({At("logs"), At("more")}, [&](int look) {
    if (look == 2) Move("logs", "away");
    if (look == 6) {
      Put("away/new.log", "new\n");
      Put("more/b.log", "other\nmore\n");
      Move("away", "logs");
    }
  });
  std::vector<std::string> lines, unreadable;
  for (const std::string& line : told) {
    const bool is_notice = line.find("log-unreadable") != std::string::npos;
    (is_notice ? unreadable : lines).push_back(line);
  }
  EXPECT_THAT(lines, testing::UnorderedElementsAre("logs/a  old", "more/b  other",
                                                   "more/b  more", "logs/new  new"));
  const auto is_root = [&](const std::string& line) {
    return line.find("file=" + At("logs") + " ") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(unreadable.begin(), unreadable.end(), is_root), 1) << "it is told once";
  EXPECT_EQ(exit_code_, kExitNo);
}

}  // namespace
}  // namespace keel
