// Where logs go, and how they are shown, with real files and pipes.
#include "elastic/workers/logs.h"

#include <boost/filesystem.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "base/faulty_files.h"
#include "base/log.h"
#include "base/posix_files.h"
#include "base/process_setup.h"
#include "base/text.h"
#include "elastic/process/console.h"
#include "elastic/workers/log_tail.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using To = StreamPlan::To;

TimePoint Limit() { return RealClock().Monotonic() + 60s; }

TEST(StreamMap, TakesANumberOrAMap) {
  EXPECT_EQ(ParseStreamMap("3")->Of(7), (StreamChoice{true, true}));
  const StreamMap map = *ParseStreamMap("0:1,1:2,12:3");
  EXPECT_EQ(map.Of(0), (StreamChoice{true, false}));
  EXPECT_EQ(map.Of(1), (StreamChoice{false, true}));
  EXPECT_EQ(map.Of(2), (StreamChoice{false, false}));
  EXPECT_EQ(map.Of(12), (StreamChoice{true, true}));
  for (const char* bad :
       {"", "4", "-1", "0:4", "0:", ":1", "0:1,", "a:1", "0;1", "0:1,,1:2", "33", "0:1,0:2",
        "0:1,1:1,0:1"}) {
    EXPECT_FALSE(ParseStreamMap(bad).ok()) << bad;
  }
}

LogOptions LogsWith(const std::string& redirects, const std::string& tee) {
  LogOptions options;
  options.log_dir = "/logs";
  options.redirects = *ParseStreamMap(redirects);
  options.tee = *ParseStreamMap(tee);
  return options;
}

TEST(WorkerLogs, WithoutOptionsOutputGoesToTheConsole) {  // #87
  const SeatLogs logs = PlanSeatLogs(LogsWith("0", "0"), "/logs/r", 0, 1);
  EXPECT_EQ(logs.out.to, To::kConsole);
  EXPECT_EQ(logs.err.to, To::kConsole);
  EXPECT_EQ(logs.error_file, "/logs/r/attempt_0/1/error.json");
}

TEST(WorkerLogs, RedirectsAreByRankAndStream) {  // #89
  const LogOptions options = LogsWith("0:1,1:2", "0");
  const SeatLogs zero = PlanSeatLogs(options, "/r", 2, 0);
  const SeatLogs one = PlanSeatLogs(options, "/r", 2, 1);
  EXPECT_EQ(zero.out, (StreamPlan{To::kFile, "/r/attempt_2/0/stdout.log", false, ""}));
  EXPECT_EQ(zero.err.to, To::kConsole);
  EXPECT_EQ(one.out.to, To::kConsole);
  EXPECT_EQ(one.err, (StreamPlan{To::kFile, "/r/attempt_2/1/stderr.log", false, ""}));
}

TEST(WorkerLogs, TeeWritesAFileAndShowsIt) {  // #91
  const SeatLogs logs = PlanSeatLogs(LogsWith("2", "1"), "/r", 0, 0);
  EXPECT_TRUE(logs.out.shown);
  EXPECT_EQ(logs.err.to, To::kFile);
  EXPECT_FALSE(logs.err.shown);
}

TEST(WorkerLogs, HiddenRanksKeepTheirFilesAndLeaveTheConsole) {  // #95
  LogOptions options = LogsWith("0", "1");
  options.shown_ranks = std::set<int>{0};
  const SeatLogs hidden = PlanSeatLogs(options, "/r", 0, 1);
  EXPECT_EQ(hidden.out.to, To::kFile);
  EXPECT_FALSE(hidden.out.shown);
  EXPECT_EQ(hidden.err.to, To::kNowhere);
  EXPECT_TRUE(PlanSeatLogs(options, "/r", 0, 0).out.shown);
}

TEST(WorkerLogs, FiltersNeedATeedStream) {  // #97
  LogOptions options = LogsWith("0", "1");
  options.out_filters = {"x"};
  options.err_filters = {"x"};
  const SeatLogs logs = PlanSeatLogs(options, "/r", 0, 0);
  EXPECT_EQ(logs.out.filtered_path, "/r/attempt_0/filtered_stdout.log");
  EXPECT_EQ(logs.err.filtered_path, "");
}

TEST(WorkerLogs, PrefixesNameRoleAndLocalRankOrFollowTheTemplate) {
  LogOptions options;
  options.role = "trainer";
  EXPECT_EQ(LinePrefix(options, 1, 5), "[trainer1]:");
  options.prefix_template = "[${role_name} ${rank}/$local_rank] ";
  EXPECT_EQ(LinePrefix(options, 1, 5), "[trainer 5/1] ");
  options.host = "node-a";
  options.prefix_template = "${hostname}:${rank}: ";
  EXPECT_EQ(LinePrefix(options, 1, 5), "node-a:5: ");
}

class LogFolder : public ::testing::Test {
 protected:
  TempDir dir_;
  PosixFiles files_;
  Random random_{1};
};

TEST_F(LogFolder, TheNameOfALongRunIsCutBetweenCharacters) {
  LogOptions options = LogsWith("3", "0");
  options.log_dir = dir_.File("logs");
  options.run_id.clear();
  for (int i = 0; i < 100; ++i) options.run_id += "\xe2\x82\xac";   // the 200th byte is within one
  ASSERT_OK_AND_ASSIGN(const WorkerLogs logs, WorkerLogs::Open(files_, random_, options));
  EXPECT_THAT(logs.run_dir(), HasSubstr("/logs/\xe2\x82\xac"));
  EXPECT_THAT(logs.run_dir(), HasSubstr("\xe2\x82\xac_"));
}

TEST_F(LogFolder, EachRunAndEachAttemptHasItsOwn) {  // #93
  LogOptions options = LogsWith("3", "0");
  options.log_dir = dir_.File("new/logs");
  options.run_id = "team/job";
  ASSERT_OK_AND_ASSIGN(WorkerLogs first, WorkerLogs::Open(files_, random_, options));
  ASSERT_OK_AND_ASSIGN(const WorkerLogs second, WorkerLogs::Open(files_, random_, options));
  EXPECT_NE(first.run_dir(), second.run_dir());
  EXPECT_THAT(first.run_dir(), HasSubstr("/new/logs/team-job_"));
  EXPECT_EQ(first.Prepare(0, 0)->attempt, 0);
  EXPECT_EQ(first.Prepare(0, 1)->attempt, 0);
  // A start that spent no restart has the same number in torchrun, and loses the former logs there.
  EXPECT_EQ(first.Prepare(0, 0)->attempt, 1);
  ASSERT_OK_AND_ASSIGN(const SeatLogs later, first.Prepare(4, 0));
  EXPECT_EQ(later.folder, first.run_dir() + "/attempt_4/0");
  EXPECT_OK(files_.List(later.folder));
}

TEST_F(LogFolder, AFileInItsPlaceIsAnErrorBeforeTheStart) {  // #101
  WriteFile(dir_.File("taken"), "");
  LogOptions options = LogsWith("3", "0");
  options.log_dir = dir_.File("taken");
  const auto logs = WorkerLogs::Open(files_, random_, options);
  ASSERT_FALSE(logs.ok());
  EXPECT_THAT(logs.error().message, HasSubstr("is a file"));
}

TEST_F(LogFolder, WithoutALogDirOneIsMadeAndDevNullMeansNone) {
  LogOptions options;
  options.temporary_dir = dir_.path();
  ASSERT_OK_AND_ASSIGN(const WorkerLogs made, WorkerLogs::Open(files_, random_, options));
  EXPECT_THAT(made.run_dir(), HasSubstr(dir_.path() + "/keelrun_"));
  options.log_dir = kNoLogs;
  options.tee = *ParseStreamMap("3");
  ASSERT_OK_AND_ASSIGN(WorkerLogs none, WorkerLogs::Open(files_, random_, options));
  ASSERT_OK_AND_ASSIGN(const SeatLogs logs, none.Prepare(0, 0));
  EXPECT_EQ(logs.out.to, To::kConsole);
  EXPECT_EQ(logs.error_file, "");
}

TEST_F(LogFolder, OfOneThatNobodyAskedForOnlyWhatHoldsSomethingStays) {
  LogOptions options;
  options.temporary_dir = dir_.path();
  ASSERT_OK_AND_ASSIGN(WorkerLogs logs, WorkerLogs::Open(files_, random_, options));
  ASSERT_OK_AND_ASSIGN(const SeatLogs silent, logs.Prepare(0, 0));
  ASSERT_OK_AND_ASSIGN(const SeatLogs failed, logs.Prepare(0, 1));
  WriteFile(failed.error_file, "{}");
  logs.RemoveEmpty();
  EXPECT_OK(files_.Stat(failed.error_file));
  EXPECT_FALSE(files_.Stat(silent.folder).ok());
  ASSERT_OK(files_.Remove(failed.error_file));
  logs.RemoveEmpty();
  EXPECT_TRUE(files_.List(dir_.path())->empty());
  // Whoever gave a folder may look for what torchrun makes there.
  options.log_dir = dir_.File("given");
  ASSERT_OK_AND_ASSIGN(WorkerLogs given, WorkerLogs::Open(files_, random_, options));
  ASSERT_OK_AND_ASSIGN(const SeatLogs kept, given.Prepare(0, 0));
  given.RemoveEmpty();
  EXPECT_OK(files_.Stat(kept.folder));
}

TEST_F(LogFolder, OfAWorkerIsNotWaitedForWhereTheFileSystemIsSilent) {
  // They live as long as the process, as the call does that gets no answer.
  static auto& below = *new PosixFiles;
  static auto& silent = *new FaultyFiles(below);
  static auto& answers = *new std::promise<void>;
  LogOptions options;
  options.log_dir = dir_.File("logs");
  options.redirects = *ParseStreamMap("3");
  ASSERT_OK_AND_ASSIGN(WorkerLogs logs, WorkerLogs::Open(silent, random_, options));
  silent.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kMakeDir, .act = [] {
    answers.get_future().wait();
  }});
  std::string log;
  LogToCallback([&](std::string_view line) { log += line; });
  ASSERT_OK_AND_ASSIGN(const SeatLogs made, logs.Prepare(0, 0));
  LogToStderr();
  EXPECT_EQ(made.out.to, To::kFile) << "it may answer again";
  EXPECT_THAT(log, HasSubstr("no-log-folder local_rank=0"));
  EXPECT_THAT(log, HasSubstr("does not answer"));
  answers.set_value();
}

// Else one death behind a disk that fails would spend all restarts.
TEST_F(LogFolder, OfAWorkerMayBeMissingWhereTheDiskFails) {
  FaultyFiles dying(files_);
  LogOptions options;
  options.log_dir = dir_.File("logs");
  ASSERT_OK_AND_ASSIGN(WorkerLogs logs, WorkerLogs::Open(dying, random_, options));
  for (const int error_number : {EIO, EROFS, ENOSPC, ESTALE}) {
    dying.Plan({.op = FileOp::kMakeDir, .error_number = error_number});
    EXPECT_OK(logs.Prepare(0, 0)) << error_number;
  }
}

class LogTailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    IgnoreSigpipe();
    ASSERT_OK_AND_ASSIGN(console_, MakePipe());
    tail_ = std::make_unique<LogTail>(files_, lost_, console_.write.number(),
                                      console_.write.number());
  }

  void Append(const std::string& name, const std::string& text) {
    const Fd file(open(dir_.File(name).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(write(file.number(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  TailSource Source(const std::string& name, const std::string& prefix) {
    return {dir_.File(name), prefix, false, "", {}};
  }
  // What the console shows until `text` has come.
  std::string ReadUntil(const std::string& text) {
    std::string shown;
    while (shown.find(text) == std::string::npos) shown += ReadSome();
    return shown;
  }
  std::string ReadSome() {
    std::array<char, 65536> piece;
    const ssize_t got = read(console_.read.number(), piece.data(), piece.size());
    return std::string(piece.data(), got > 0 ? static_cast<size_t>(got) : 0);
  }
  std::string ReadRest() {
    tail_.reset();
    console_.write.Close();
    std::string shown;
    for (std::string some; !(some = ReadSome()).empty();) shown += some;
    return shown;
  }

  TempDir dir_;
  PosixFiles files_;
  // Until this process has that file open no more.
  static bool AwaitClosed(const std::string& path) {
    const TimePoint end = RealClock().Monotonic() + std::chrono::seconds(60);
    for (;; RealClock().SleepFor(std::chrono::milliseconds(1))) {
      bool is_open = false;
      for (const auto& fd : boost::filesystem::directory_iterator("/proc/self/fd")) {
        boost::system::error_code gone;
        is_open |= boost::filesystem::read_symlink(fd.path(), gone) == path;
      }
      if (!is_open) return true;
      if (RealClock().Monotonic() > end) return false;
    }
  }

  LostOutput lost_{nullptr};
  PipeEnds console_;
  std::unique_ptr<LogTail> tail_;
};

TEST_F(LogTailTest, ShowsLinesWhileTheyComeAndTheLastOneWithoutItsLineFeed) {
  const int number = tail_->Follow(Source("a", "[r0]:"));
  Append("a", "one\ntw");
  EXPECT_EQ(ReadUntil("one\n"), "[r0]:one\n");
  Append("a", "o\nlast");
  EXPECT_EQ(ReadUntil("two\n"), "[r0]:two\n");
  tail_->Finish(number);
  EXPECT_EQ(ReadUntil("last"), "[r0]:last\n");
  EXPECT_OK(tail_->Stop(Limit()));
  EXPECT_EQ(ReadRest(), "");
}

// As tqdm draws it, and as Windows ends lines.
TEST_F(LogTailTest, EachStateOfAProgressBarIsALine) {
  const int number = tail_->Follow(Source("a", "[r0]:"));
  Append("a", "\r  0%\r 50%\r");
  EXPECT_EQ(ReadUntil(" 50%\n"), "[r0]:  0%\n[r0]: 50%\n");
  Append("a", "100%\nnext\r");
  EXPECT_EQ(ReadUntil("next\n"), "[r0]:100%\n[r0]:next\n");
  Append("a", "\nlast\r\n\r\nend");
  tail_->Finish(number);
  EXPECT_EQ(ReadUntil("end\n"), "[r0]:last\n[r0]:\n[r0]:end\n");
}

// Each attempt has a file of its own, and a job may have thousands.
TEST_F(LogTailTest, AFilteredFileIsClosedWithItsLastWorkerAndGoesOnWithAnother) {
  TailSource source = Source("a", "[r0]:");
  source.filtered_path = dir_.File("filtered");
  source.filters = {"loss"};
  const int first = tail_->Follow(source);
  Append("a", "loss=1\n");
  ReadUntil("loss=1\n");
  tail_->Finish(first);
  EXPECT_TRUE(AwaitClosed(source.filtered_path));
  TailSource other = source;
  other.path = dir_.File("b");
  other.prefix = "[r1]:";
  tail_->Follow(other);
  Append("b", "loss=2\n");
  EXPECT_OK(tail_->Stop(Limit()));
  EXPECT_EQ(ReadFile(source.filtered_path), "[r0]:loss=1\n[r1]:loss=2\n");
}

TEST_F(LogTailTest, AFilteredFileThatWasEmptiedGoesOnAtItsBeginning) {
  TailSource source = Source("a", "");
  source.filtered_path = dir_.File("filtered");
  source.filters = {"loss"};
  tail_->Follow(source);
  Append("a", "loss=1\n");
  ReadUntil("loss=1\n");
  boost::filesystem::resize_file(source.filtered_path, 0);
  Append("a", "loss=2\n");
  EXPECT_OK(tail_->Stop(Limit()));
  EXPECT_EQ(ReadFile(source.filtered_path), "loss=2\n");
}

// Its first words are in a file on a disk that died, and its last ones in memory.
TEST_F(LogTailTest, WhatASpoolCannotReadIsCountedAndTheRestIsShown) {
  FaultyFiles dying(files_);
  Append("a", "early\n");
  auto file = dying.Open(dir_.File("a"), {});
  ASSERT_OK(file);
  dying.Plan({.op = FileOp::kReadAt, .lasting = true});
  std::vector<LostBytes> told;
  LostOutput lost([&](const LostBytes& one) { told.push_back(one); });
  LogTail tail(files_, lost, console_.write.number(), console_.write.number());
  TailSource source = Source("a", "[r0]:");
  source.spool = std::make_shared<OutputSpool>(100);
  source.spool->AddFile(*std::move(file), 0, 6);
  EXPECT_EQ(source.spool->AddMemory("why it ended\n"), 13u);
  source.spool->End();
  tail.Follow(source);
  EXPECT_OK(tail.Stop(Limit()));
  EXPECT_EQ(ReadUntil("ended\n"), "[r0]:why it ended\n");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].where, "the console, of " + dir_.File("a"));
  EXPECT_EQ(told[0].bytes, 6u);
}

TEST_F(LogTailTest, WhatNeverWritesOrNeverExistsEndsCleanly) {  // #99
  Append("empty", "");
  tail_->Finish(tail_->Follow(Source("empty", "x")));
  tail_->Follow(Source("missing", "y"));
  EXPECT_OK(tail_->Stop(Limit()));
  EXPECT_EQ(ReadRest(), "");
}

TEST_F(LogTailTest, LinesOfManyWorkersAreNeverMixed) {
  constexpr int kWorkers = 8;
  constexpr int kLines = 300;
  for (int w = 0; w < kWorkers; ++w) {
    tail_->Follow(Source(std::to_string(w), "[" + std::to_string(w) + "]:"));
  }
  auto shown = std::async(std::launch::async, [this] {
    std::string text;
    while (std::count(text.begin(), text.end(), '\n') < kWorkers * kLines) text += ReadSome();
    return text;
  });
  std::vector<std::thread> writers;
  for (int w = 0; w < kWorkers; ++w) {
    writers.emplace_back([this, w] {
      for (int i = 0; i < kLines; ++i) {
        const std::string line = std::to_string(i) + std::string(100 + 37 * w, 'a' + w) + "\n";
        Append(std::to_string(w), line.substr(0, 50));
        Append(std::to_string(w), line.substr(50));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_OK(tail_->Stop(Limit()));
  std::vector<int> next(kWorkers, 0);
  for (const std::string& line : SplitList(shown.get(), '\n')) {
    const int w = line[1] - '0';
    ASSERT_EQ(line, "[" + std::to_string(w) + "]:" + std::to_string(next[w]++) +
                        std::string(100 + 37 * w, 'a' + w));
  }
  EXPECT_THAT(next, ::testing::Each(kLines));
}

TEST_F(LogTailTest, ABlockedConsoleHoldsUpNobodyElseAndLosesNothing) {
  // More than the pipe takes; nobody reads yet.
  std::string much;
  for (int i = 0; i < 40'000; ++i) much += "line " + std::to_string(i) + "\n";
  tail_->Follow(Source("a", ""));
  Append("a", much);
  EXPECT_EQ(tail_->Stop(RealClock().Monotonic()).error().code, Code::kTimeout);
  auto shown = std::async(std::launch::async, [&] {
    std::string text;
    while (text.size() < much.size()) text += ReadSome();
    return text;
  });
  EXPECT_OK(tail_->Stop(Limit()));
  EXPECT_EQ(shown.get(), much);
}

TEST_F(LogTailTest, ItCanBeGivenUpWhileTheConsoleIsBlocked) {
  tail_->Follow(Source("a", ""));
  Append("a", std::string(1 << 20, 'x') + "\n");
  tail_.reset();   // returns
}

TEST_F(LogTailTest, AConsoleThatIsGoneStopsNothing) {
  console_.read.Close();
  const int number = tail_->Follow(Source("a", ""));
  Append("a", "unseen\n");
  tail_->Finish(number);
  EXPECT_OK(tail_->Stop(Limit()));
}

// As of `keelrun ... > file` on a full disk.
TEST_F(LogTailTest, AConsoleThatIsAFullDiskIsToldOf) {
  const Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  tail_ = std::make_unique<LogTail>(files_, lost_, full.number(), full.number());
  Append("a", "unseen\n");
  tail_->Follow(Source("a", "[r0]:"));
  EXPECT_OK(tail_->Stop(Limit()));
  EXPECT_EQ(lost_.All(), (std::vector<LostBytes>{
                             {"standard output", 12, "No space left on device"}}));
}

TEST_F(LogTailTest, FilteredLinesGoToTheirFileWithPrefix) {  // #97
  TailSource source = Source("a", "[r0]:");
  source.filtered_path = dir_.File("filtered");
  source.filters = {"apple", "loss"};
  tail_->Follow(source);
  Append("a", "apple\npear\nloss=1");
  EXPECT_OK(tail_->Stop(Limit()));
  EXPECT_EQ(ReadFile(dir_.File("filtered")), "[r0]:apple\n[r0]:loss=1\n");
}

TEST_F(LogTailTest, AnEmptiedFileIsFollowedFromItsNewBeginning) {
  tail_->Follow(Source("a", ""));
  Append("a", "before the cut\n");
  ReadUntil("before the cut\n");
  ASSERT_EQ(truncate(dir_.File("a").c_str(), 0), 0);
  // The cut must be seen before the file is as long as it was.
  Append("a", "new\n");
  EXPECT_EQ(ReadUntil("new\n"), "new\n");
}

// Such as one of NFS whose folder somebody else has removed.
TEST_F(LogTailTest, AFileThatCannotBeReadIsToldOfOnceAndOpenedAnew) {
  FaultyFiles files(files_);
  for (int call = 1; call <= 5; ++call) files.Plan({.at_call = call, .op = FileOp::kReadAt});
  std::atomic<int> told = 0;
  LogToCallback([&told](std::string_view) { ++told; });
  Append("a", "one\n");
  {
    LogTail tail(files, lost_, console_.write.number(), console_.write.number());
    tail.Follow(Source("a", ""));
    EXPECT_EQ(ReadUntil("one\n"), "one\n");
  }
  LogToStderr();
  EXPECT_EQ(told, 1);
  const std::vector<FileCall> calls = files.calls();
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                          [](const FileCall& call) { return call.op == FileOp::kOpen; }),
            6);
}

TEST(Console, WritesWholeLinesIntoAPipeAndGivesUpWhenTold) {
  ASSERT_OK_AND_ASSIGN(const PipeEnds pipe, MakePipe());
  Console console(pipe.write.number());
  EXPECT_TRUE(console.Write("hello\n", CancelToken::Never()));
  EXPECT_EQ(fcntl(pipe.write.number(), F_GETFL) & O_NONBLOCK, 0) << "others share the stream";
  const CancelToken give_up;
  auto writing = std::async(std::launch::async, [&] {
    return console.Write(std::string(1 << 20, 'x'), give_up);
  });
  give_up.Cancel();
  EXPECT_FALSE(writing.get());
}

}  // namespace
}  // namespace keel
