// What is read from error files, and what is said at the end.
#include "elastic/report/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <ctime>

#include "base/json.h"
#include "base/options_env.h"
#include "base/posix_files.h"
#include "elastic/report/error_file.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;

class ErrorFile : public ::testing::Test {
 protected:
  Result<std::optional<WorkerError>> Read(const std::string& text) {
    WriteFile(dir_.File("error.json"), text);
    return ReadErrorFile(files_, dir_.File("error.json"));
  }
  TempDir dir_;
  PosixFiles files_;
};

TEST_F(ErrorFile, BothFormsOfPythonsAreRead) {
  ASSERT_OK_AND_ASSIGN(const auto full, Read(R"({"message":{"message":"Boom: x","extraInfo":
      {"py_callstack":"tb","timestamp":"1700000000"}}})"));
  EXPECT_EQ(full->message, "Boom: x");
  EXPECT_EQ(full->traceback, "tb");
  EXPECT_EQ(full->time_s, 1'700'000'000);
  ASSERT_OK_AND_ASSIGN(const auto plain, Read(R"({"message":"died","timestamp":17})"));
  EXPECT_EQ(plain->message, "died");
  EXPECT_EQ(plain->time_s, 17);
  ASSERT_OK_AND_ASSIGN(const auto odd, Read(R"({"message":{"message":7,"extraInfo":
      {"timestamp":"T"}}})"));
  EXPECT_EQ(odd->message, "");
  EXPECT_EQ(odd->time_s, std::nullopt);
}

TEST_F(ErrorFile, NoFileAndAnEmptyOneMeanThatNoneWasWritten) {
  EXPECT_FALSE(ReadErrorFile(files_, dir_.File("missing"))->has_value());
  EXPECT_FALSE(Read("")->has_value());
}

TEST_F(ErrorFile, WhatItsWriterDidNotFinishIsNamedAsDamaged) {
  for (const char* text : {"{\"message\":{\"mess", "[]", "{}", "{\"message\":7}"}) {
    const auto error = Read(text);
    ASSERT_FALSE(error.ok()) << text;
    EXPECT_EQ(error.error().code, Code::kCorrupt);
    EXPECT_THAT(error.error().message, HasSubstr("error.json"));
  }
}

TEST_F(ErrorFile, IsPassedOnWithTheExitCodeInside) {  // #65
  ASSERT_OK_AND_ASSIGN(const auto error, Read(R"({"message":{"message":"Boom: x","extraInfo":
      {"py_callstack":"tb","timestamp":"T"}},"more":[1]})"));
  const std::string to = dir_.File("launcher.json");
  ASSERT_OK(PassErrorOn(files_, *error, ExitStatus::Exited(1), to));
  EXPECT_EQ(*ParseJson(ReadFile(to)),
            *ParseJson(R"({"message":{"message":"Boom: x","extraInfo":{"py_callstack":"tb",
                "timestamp":"T"},"errorCode":1},"more":[1]})"));
  ASSERT_OK(PassErrorOn(files_, *error, ExitStatus::Killed(SIGKILL), to));
  EXPECT_EQ((*ParseJson(ReadFile(to)))["message"]["errorCode"], -9);
  ASSERT_OK_AND_ASSIGN(const auto plain, Read(R"({"message":"died"})"));
  ASSERT_OK(PassErrorOn(files_, *plain, ExitStatus::Exited(1), to));
  EXPECT_EQ(ReadFile(to), R"({"message":"died"})");
}

WorkerFailure Failure(int rank, ExitStatus status, int64_t seen_nanos) {
  WorkerFailure failure;
  failure.rank = rank;
  failure.local_rank = rank % 4;
  failure.host = "node-b";
  failure.pid = 100 + rank;
  failure.status = status;
  failure.seen_nanos = seen_nanos;
  return failure;
}

// That of this process, for a while, as POSIX writes it.
class TimeZone {
 public:
  explicit TimeZone(const std::string& name) {
    EXPECT_TRUE(SetOwnEnvironment({{"TZ", name}}).ok());
    tzset();
  }
  ~TimeZone() {
    ForgetOwnEnvironment({"TZ"});
    tzset();
  }
};

TEST(FailureReport, HasTorchrunsFormAndNamesTheFirstAsRootCause) {  // #57
  const TimeZone nepal("<+0545>-5:45");
  const std::vector<WorkerFailure> failures = {
      Failure(6, ExitStatus::Killed(SIGABRT), 1'700'000'005 * kSecond),
      Failure(5, ExitStatus::Exited(3), 1'700'000'004 * kSecond)};
  EXPECT_EQ(FailureReportText("train.py", failures),
            "============================================================\n"
            "train.py FAILED\n"
            "------------------------------------------------------------\n"
            "Failures:\n"
            "[0]:\n"
            "  time      : 2023-11-15_03:58:25\n"
            "  host      : node-b\n"
            "  rank      : 6 (local_rank: 2)\n"
            "  exitcode  : -6 (pid: 106) (SIGABRT)\n"
            "  error_file: <N/A>\n"
            "  traceback : Signal 6 (SIGABRT) received by PID 106\n"
            "------------------------------------------------------------\n"
            "Root Cause (first observed failure):\n"
            "[1]:\n"
            "  time      : 2023-11-15_03:58:24\n"
            "  host      : node-b\n"
            "  rank      : 5 (local_rank: 1)\n"
            "  exitcode  : 3 (pid: 105)\n"
            "  error_file: <N/A>\n"
            "  traceback : none: the program left no error file (in Python, "
            "torch.distributed.elastic's @record writes one)\n"
            "============================================================\n");
  EXPECT_EQ(FailureReportJson("train.py", failures)["root_cause"], 1);
}

// Else a worker could colour the console, or write lines that look like ours.
TEST(FailureReport, WhatWorkersWroteCannotDisturbTheConsole) {
  const std::string wild("a\0b\x1b[31mred\nFAILED\r\xff", 20);
  const std::string tame = R"(a\x00b\x1b[31mred\nFAILED\r\xff)";
  JobSummary summary;
  summary.job = summary.outcome = summary.logs = wild;
  summary.events.push_back({0, 1, "died", wild, wild, wild});
  EXPECT_EQ(JobSummaryText(summary),
            "job " + tame + ": " + tame + " (exit code 0) after 0 us, 0 epochs, 1 event\n" +
                "  1970-01-01T00:00:00Z epoch 1: " + tame + " " + tame + "\n    -> " + tame +
                "\n  logs: " + tame + "\n");
  WorkerFailure failure = Failure(0, ExitStatus::Exited(1), 0);
  failure.host = failure.error_file = wild;
  failure.error.emplace().traceback = wild;
  const std::string report = FailureReportText(wild, {failure});
  EXPECT_THAT(report, HasSubstr("\n" + tame + " FAILED\n"));
  EXPECT_THAT(report, HasSubstr("host      : " + tame + "\n"));
  EXPECT_THAT(report, HasSubstr("error_file: " + tame + "\n"));
  // The lines of a traceback stay lines, farther right than ours.
  EXPECT_THAT(report, HasSubstr("traceback : " R"(a\x00b\x1b[31mred)" "\n  "
                                R"(FAILED\r\xff)" "\n"));
}

TEST(FailureReport, SignalsAndHighExitCodesAreToldApart) {  // #59, #69
  const auto text = [](ExitStatus status) {
    return FailureReportText("t", {Failure(0, status, 0)});
  };
  EXPECT_THAT(text(ExitStatus::Killed(SIGKILL)),
              HasSubstr("exitcode  : -9 (pid: 100) (SIGKILL)\n"));
  EXPECT_THAT(text(ExitStatus::Killed(SIGSEGV)), HasSubstr("(pid: 100) (SIGSEGV)\n"));
  EXPECT_THAT(text(ExitStatus::Exited(138)), HasSubstr("exitcode  : 138 (pid: 100)\n"));
  EXPECT_THAT(text(ExitStatus::Exited(138)), Not(HasSubstr("SIG")));
  EXPECT_THAT(text(ExitStatus::Exited(138)), HasSubstr("<NO_OTHER_FAILURES>"));
}

TEST(FailureReport, AnErrorFilesTimeCountsAndItsTracebackIsShown) {
  std::vector<WorkerFailure> failures = {Failure(0, ExitStatus::Exited(1), 50 * kSecond),
                                         Failure(1, ExitStatus::Exited(1), 60 * kSecond)};
  EXPECT_EQ(RootCause(failures).rank, 0);
  failures[1].error = WorkerError{"Boom", "line 1\nline 2", 49, "{}"};
  failures[1].error_file = "/logs/error.json";
  EXPECT_EQ(RootCause(failures).rank, 1);
  EXPECT_THAT(FailureReportText("t", failures), HasSubstr("traceback : line 1\n  line 2\n"));
  EXPECT_THAT(FailureReportText("t", failures), HasSubstr("error_file: /logs/error.json"));
}

TEST(JobSummary, TellsEachEventWithItsAnswer) {
  JobSummary summary;
  summary.job = "bert";
  summary.outcome = "finished";
  summary.started_nanos = 1'700'000'000 * kSecond;
  summary.ended_nanos = 1'700'000'200 * kSecond;
  summary.epochs = 2;
  summary.logs = "/logs/bert_1";
  summary.events.push_back({1'700'000'100 * kSecond, 1, "died", "rank 3 on node-b (pid 7)",
                            "killed by signal 9 (SIGKILL)", "the others went on as epoch 2"});
  EXPECT_EQ(JobSummaryText(summary),
            "job bert: finished (exit code 0) after 3 min 20 s, 2 epochs, 1 event\n"
            "  2023-11-14T22:15:00Z epoch 1: rank 3 on node-b (pid 7) killed by signal 9 "
            "(SIGKILL)\n"
            "    -> the others went on as epoch 2\n"
            "  logs: /logs/bert_1\n");
  const Json json = JobSummaryJson(summary);
  EXPECT_EQ(json["events"][0]["what"], "died");
  EXPECT_EQ(json["exit_code"], 0);
}

TEST(JobSummary, TellsWhatBecameOfTheTimeWhereItIsKnown) {
  JobSummary summary;
  summary.job = "bert\n";
  summary.time.steps = std::chrono::seconds(9);
  summary.time.starting = std::chrono::seconds(1);
  EXPECT_THAT(JobSummaryText(summary), Not(HasSubstr("goodput")));
  EXPECT_EQ(GoodputLine(summary), "");
  EXPECT_TRUE(JobSummaryJson(summary)["time_here"]["goodput"].is_null());
  summary.time.knows_steps = true;
  const std::string line = "goodput 0.900: of 10 s of worker time here 9 s went into steps that "
                           "counted; the rest: starting 10.0%\n";
  EXPECT_THAT(JobSummaryText(summary), HasSubstr("  " + line));
  EXPECT_EQ(GoodputLine(summary), "job bert\\n: " + line);
  EXPECT_DOUBLE_EQ(JobSummaryJson(summary)["time_here"]["goodput"].get<double>(), 0.9);
}

TEST(JobSummary, OfVeryManyEventsTheFirstAndTheLastAreShown) {
  JobSummary summary;
  for (int i = 0; i < 1000; ++i) summary.events.push_back({0, i, "died", "", "event", ""});
  const std::string text = JobSummaryText(summary);
  for (const char* shown : {"epoch 0:", "epoch 24:", "950 more", "epoch 975:", "epoch 999:"}) {
    EXPECT_THAT(text, HasSubstr(shown));
  }
  EXPECT_THAT(text, Not(HasSubstr("epoch 25:")));
  EXPECT_THAT(text, Not(HasSubstr("epoch 974:")));
  EXPECT_EQ(JobSummaryJson(summary)["events"].size(), 1000u);
}

TEST(FailureReport, OfAVeryLongTracebackItsEndsAreShownAndWhereAllOfItIs) {
  WorkerFailure failure = Failure(0, ExitStatus::Exited(1), 0);
  failure.error_file = "/logs/" + std::string(200, 'd') + "/error.json";
  std::string traceback = "Traceback:\n";
  for (int line = 0; line < 100'000; ++line) traceback += "  line " + std::to_string(line) + "\n";
  traceback += "ValueError: the last word";
  failure.error = WorkerError{"the last word", traceback, 0, "{}"};
  const std::string report = FailureReportText("t", {failure});
  EXPECT_LT(report.size(), 8192u);
  EXPECT_THAT(report, HasSubstr("traceback : Traceback:\n    line 0\n"));
  EXPECT_THAT(report, HasSubstr("\n  ValueError: the last word\n"));
  EXPECT_THAT(report, HasSubstr("\n  ... 1.23 MiB left out here; all of it is in " +
                                failure.error_file + " ...\n    line "))
      << "and it is cut between lines";
  EXPECT_EQ(FailureReportJson("t", {failure})["failures"][0]["traceback"], traceback);
}

TEST(FailureReport, ALongLineIsCutBetweenCharacters) {
  for (const char* const begin : {"", "x", "xy"}) {
    std::string message = begin;
    while (message.size() < 100'000) message += "\xe2\x82\xac";
    WorkerFailure failure = Failure(0, ExitStatus::Exited(1), 0);
    failure.error = WorkerError{message, "", 0, "{}"};
    const std::string report = FailureReportText("t", {failure});
    EXPECT_LT(report.size(), 8192u);
    EXPECT_THAT(report, HasSubstr("left out here"));
    EXPECT_THAT(report, Not(HasSubstr("\\x")));
  }
}

}  // namespace
}  // namespace keel
