// Parts of `keel log`: what a line says, whose a file is, how lines of many files become one story.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/log_line.h"
#include "base/memory_files.h"
#include "tests/harness/expect_ok.h"
#include "tools/keel/log_file.h"
#include "tools/keel/log_merge.h"
#include "tools/keel/log_sources.h"
#include "tools/keel/log_story.h"
#include "tools/keel/log_words.h"

namespace keel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;
const std::string kTime = "2026-11-29T01:32:27.948Z";

// --- one line ---

TEST(LogWords, ATimeIsReadBackAsItWasWritten) {
  for (const int64_t nanos : {int64_t{0}, 951'782'400 * kSecond, 1'795'915'947'948'000'000}) {
    EXPECT_EQ(ReadUtcStamp(UtcStamp(nanos)), nanos);
  }
  EXPECT_EQ(UtcStamp(*ReadUtcStamp(kTime)), kTime);
  EXPECT_EQ(UtcStamp(*ReadUtcStamp("2026-11-29T01:32:27Z")), "2026-11-29T01:32:27.000Z");
  for (const char* const wrong : {"", "2026-11-29T01:32:27.948", "2026-13-29T01:32:27.948Z",
                                  "2026-02-30T01:32:27.948Z", "2026-11-29T25:32:27.948Z",
                                  "2026-11-29 01:32:27.948Z", "2026-11-29T01:32:2x.948Z"}) {
    EXPECT_FALSE(ReadUtcStamp(wrong)) << wrong;
  }
}

TEST(LogWords, WhatTheLogWritesIsReadBackWhateverItsValuesHold) {
  const std::string nasty = "a \"b\"\\ =\n\r\t\x01\xff ü";
  const std::vector<LogField> fields = {{"rank", 3}, {"share", 0.5}, {"ok", true},
                                        {"empty", ""}, {"digits", "12 "}, {"reason", nasty}};
  const std::string text = LogPayload(LogFormat::kText, "worker-died", NamedLogValues(fields));
  const LogWords words = ReadLogWords(kTime + " error " + text);
  EXPECT_EQ(words.nanos, 1'795'915'947'948'000'000);
  EXPECT_EQ(words.level, "error");
  EXPECT_EQ(words.event, "worker-died");
  EXPECT_EQ(words.fields["rank"], 3);
  EXPECT_EQ(words.fields["share"], 0.5);
  EXPECT_EQ(words.fields["ok"], true);
  EXPECT_EQ(words.fields["empty"], "");
  EXPECT_EQ(words.fields["digits"], "12 ");
  EXPECT_EQ(words.fields["reason"].get<std::string>(), nasty);
}

TEST(LogWords, TheSameLogAsJsonReadsTheSame) {
  const std::vector<LogField> fields = {{"rank", 3}, {"how", "killed by signal 9"}};
  const auto named = NamedLogValues(fields);
  const LogWords as_json = ReadLogWords("{\"time\":\"" + kTime + "\",\"level\":\"warn\"," +
                                        LogPayload(LogFormat::kJson, "gone", named));
  const LogWords as_text =
      ReadLogWords(kTime + " warn " + LogPayload(LogFormat::kText, "gone", named));
  EXPECT_EQ(as_json.nanos, as_text.nanos);
  EXPECT_EQ(as_json.text, as_text.text);
  EXPECT_EQ(as_json.fields, as_text.fields);
}

TEST(LogWords, AStepOfTrainingHasItsPartsAsFields) {
  const LogWords words = ReadLogWords(
      R"({"event":"step","step":20,"loss":2.5,"wall_ns":1795915942789467999,"ms":{"data":0.02}})");
  EXPECT_EQ(words.nanos, 1'795'915'942'789'467'999);
  EXPECT_EQ(words.text, "info step step=20 loss=2.5 data_ms=0.02");
}

TEST(LogWords, AnyOtherLineIsItsOwnText) {
  for (const std::string& line : {std::string("Traceback (most recent call last):"), std::string(),
                                  std::string("{\"event\":"), kTime, kTime + " step 3",
                                  std::string("[rank 0]: hello"), std::string("\0\xfe=", 3)}) {
    const LogWords words = ReadLogWords(line);
    EXPECT_FALSE(words.is_event()) << line;
    EXPECT_EQ(words.text, line == kTime + " step 3" ? "step 3" : line);
  }
}

TEST(LogWords, ACopiedLineNamesItsWorker) {
  const LogWords words = ReadLogWords("[trainer12]:" + kTime + " info step step=1");
  EXPECT_EQ(words.copy_of, "trainer12");
  EXPECT_EQ(words.event, "step");
}

TEST(LogWords, OfAProgressBarTheLastStateIsTaken) {
  EXPECT_EQ(ReadLogWords(" 10%\r 20%\r 30%\r").text, " 30%");
}

TEST(LogWords, WhatPyTorchMarksWithItsRankIsNoCopy) {
  for (const char* const line : {"[rank0]: Traceback (most recent call last):", "[rank12]:[W1129]",
                                 "[rank0]:"}) {
    EXPECT_EQ(ReadLogWords(line).copy_of, "") << line;
    EXPECT_EQ(ReadLogWords(line).text, line);
  }
  EXPECT_EQ(ReadLogWords("[default3]:[rank3]: Traceback").copy_of, "default3");
  EXPECT_EQ(ReadLogWords("[default3]:in its own file", false).text, "[default3]:in its own file");
}

// --- whose a file is ---

std::vector<std::string> Labels(const std::vector<std::string>& paths) {
  std::vector<std::string> labels;
  for (const LogSource& source : LogSourcesOf(paths)) labels.push_back(source.label());
  return labels;
}

TEST(LogSources, AFolderIsAHostAndAWorkerIsNamedByLocalRankAndAttempt) {
  EXPECT_THAT(Labels({"node0/keelrun.log", "node0/keelrun.log.1", "train.jsonl",
                      "node0/job_1234abcd/attempt_0/3/stderr.log",
                      "node0/job_1234abcd/attempt_2/3/stdout.log"}),
              ElementsAre("node0/keelrun", "node0/keelrun", "train", "node0/worker3",
                          "node0/worker3.2"));
}

TEST(LogSources, SeveralRunsInOneFolderAreToldApart) {
  EXPECT_THAT(Labels({"job_1234abcd/attempt_0/0/stderr.log",
                      "job_00000000/attempt_0/0/stderr.log"}),
              ElementsAre("1234abcd/worker0", "00000000/worker0"));
}

TEST(LogSources, AFileIsNamedByAllButItsEnding) {
  EXPECT_THAT(Labels({"10.0.0.1.log", "10.0.0.2.log", "train.0.jsonl", ".log", "rank.log.3"}),
              ElementsAre("10.0.0.1", "10.0.0.2", "train.0", ".log", "rank.3"));
}

TEST(LogSources, RootsAreNamedByTheShortestThatTellsThemApart) {
  EXPECT_THAT(RootNamesOf({"node0/logs", "/mnt/node1/logs/"}), ElementsAre("node0", "node1"));
  EXPECT_THAT(RootNamesOf({"a/n0", "./b/n0", "c/n1"}), ElementsAre("a/n0", "b/n0", "c/n1"));
  EXPECT_THAT(RootNamesOf({"logs", "old/logs"}), ElementsAre("logs", "old/logs"));
  EXPECT_THAT(RootNamesOf({"./", "/", "x"}), ElementsAre(".", "/", "x"));
  EXPECT_THAT(RootNamesOf({"same", "same"}), ElementsAre("same", "same"));
}

TEST(LogSources, WhatIsNoLogOrACopyIsLeftOut) {
  EXPECT_THAT(Labels({"step-000000040/rank0.keel", "job_1234abcd/attempt_0/filtered_stdout.log",
                      "job_1234abcd/attempt_0/0/error.json", "train.py", ""}),
              IsEmpty());
  EXPECT_FALSE(MayHoldLogs("step-000000040"));
  EXPECT_FALSE(MayHoldLogs(".git"));
  EXPECT_TRUE(MayHoldLogs("attempt_0"));
}

// --- a file that changes ---

class LogFileLines : public testing::Test {
 protected:
  void Append(const std::string& text) { Write(text, false); }
  void Replace(const std::string& text) { Write(text, true); }
  void Write(const std::string& text, bool anew) {
    const auto file = files_.Open("/log", {.write = true, .create = true, .truncate = anew});
    ASSERT_OK(file);
    const auto size = (*file)->Size();
    ASSERT_OK(size);
    ASSERT_OK((*file)->WriteAt(*size, BytesOf(text)));
  }
  // All that there is, each with a '|' behind it; '~' where it is torn.
  std::string Read(LogFile& log, bool with_torn = false) {
    std::string all;
    for (;;) {
      const auto line = log.Next(with_torn);
      EXPECT_OK(line);
      if (!line.ok() || !line->has_value()) return all;
      all += (*line)->text + ((*line)->is_torn ? "~" : "|");
    }
  }
  MemoryFiles files_;
};

TEST_F(LogFileLines, AreTheSameWhereverTheFileEndsMeanwhile) {
  const std::string whole = "one\n\ntwo\nthree\n";
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    Replace(whole.substr(0, cut));
    LogFile log(files_, "/log");
    const std::string before = Read(log);
    Append(whole.substr(cut));
    EXPECT_EQ(before + Read(log), "one||two|three|") << cut;
  }
}

TEST_F(LogFileLines, ATornLastLineIsGivenWhenItIsAskedFor) {
  Replace("one\ntw");
  LogFile log(files_, "/log");
  EXPECT_EQ(Read(log), "one|");
  EXPECT_EQ(Read(log, true), "tw~");
}

TEST_F(LogFileLines, AnotherFileOfTheNameIsReadFromItsBeginning) {
  Replace("one\ntwo\nunfin");
  LogFile log(files_, "/log");
  EXPECT_EQ(Read(log), "one|two|");
  ASSERT_OK(files_.Rename("/log", "/log.1"));
  Replace("three\n");
  ASSERT_OK(log.Renew());
  EXPECT_EQ(Read(log), "unfin~three|");
}

TEST_F(LogFileLines, AFileThatWasCutIsReadAnew) {
  Replace("one\ntwo\n");
  LogFile log(files_, "/log");
  EXPECT_EQ(Read(log), "one|two|");
  ASSERT_OK(log.Renew());
  EXPECT_EQ(Read(log), "");
  Replace("3\n");
  ASSERT_OK(log.Renew());
  EXPECT_EQ(Read(log), "3|");
}

TEST_F(LogFileLines, ALongLineIsCutAndCounted) {
  Replace(std::string(100'000, 'x') + "\nnext\n");
  LogFile log(files_, "/log");
  const auto line = log.Next(false);
  ASSERT_OK(line);
  EXPECT_EQ((*line)->text.size(), kLogLineBytes);
  EXPECT_EQ((*line)->cut_bytes, 100'000 - kLogLineBytes);
  EXPECT_EQ(Read(log), "next|");
}

TEST_F(LogFileLines, OfALongLineThatIsOverwrittenTheLastStateIsGiven) {
  std::string bar;
  for (int step = 0; step <= 5000; ++step) bar += "\rstep " + std::to_string(step) + " of 5000";
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    Replace(bar + end);
    LogFile log(files_, "/log");
    const auto line = log.Next(true);
    ASSERT_OK(line);
    EXPECT_EQ(ReadLogWords((*line)->text).text, "step 5000 of 5000");
    EXPECT_EQ((*line)->cut_bytes, 0u);
  }
}

// --- one story ---

// Logs of lines with a second in front; "-": no time.
std::string Merged(std::vector<std::vector<std::string>> logs, int64_t begins = 0) {
  std::vector<size_t> at(logs.size());
  LogMerge merge([&](size_t source) -> std::optional<LogEntry> {
    if (at[source] == logs[source].size()) return std::nullopt;
    const std::string& line = logs[source][at[source]++];
    LogEntry entry;
    if (line.front() != '-') entry.words.nanos = line.front() - '0';
    entry.words.text = line.substr(1);
    return entry;
  });
  for (size_t i = 0; i < logs.size(); ++i) merge.Add(begins);
  std::string story;
  while (const auto entry = merge.Next()) story += entry->words.text;
  return story;
}

TEST(LogMerge, TakesTheEarliestOfAllThatComeNext) {
  EXPECT_EQ(Merged({{"1a", "4d", "5e"}, {"2b", "3c", "6f"}, {}}), "abcdef");
}

TEST(LogMerge, ALineWithoutATimeStaysBehindTheOneBeforeIt) {
  EXPECT_EQ(Merged({{"1a", "-b", "-c", "5f"}, {"2d", "3e"}}), "abcdef");
}

TEST(LogMerge, LinesInFrontOfTheFirstTimeComeWhereTheLogBegins) {
  EXPECT_EQ(Merged({{"1a", "2b", "9e"}, {"-c", "-d"}}, 2), "abcde");
}

TEST(LogMerge, KeepsTheOrderOfALogWhoseClockWasSetBack) {
  EXPECT_EQ(Merged({{"5a", "1b", "2c"}, {"6d"}}), "abcd");
}

TEST(LogMerge, GoesOnWithWhatIsLoggedLater) {
  std::optional<LogEntry> more;
  LogMerge merge([&](size_t) { return std::exchange(more, std::nullopt); });
  merge.Add(0);
  EXPECT_FALSE(merge.Next());
  more = LogEntry{};
  merge.SetUntold(7);
  const auto entry = merge.Next();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->nanos, 7);
}

class LogStoryOf : public testing::Test {
 protected:
  static LogStory Of(LogFilter filter) {
    LogStory story(std::move(filter), Paint());
    for (LogSource& source : LogSourcesOf({"a/keelrun.log", "b/train.jsonl",
                                           "a/job_1234abcd/attempt_0/1/stderr.log"})) {
      source.root = "root";
      story.Add(std::move(source));
    }
    return story;
  }
  static LogEntry Entry(size_t source, const std::string& line) {
    LogEntry entry;
    entry.source = source;
    entry.words = ReadLogWords(line);
    entry.nanos = entry.words.nanos.value_or(0);
    return entry;
  }
};

TEST_F(LogStoryOf, WhatLiesInTwoFilesIsToldOnce) {
  LogStory story = Of({});
  const std::string step = kTime + " info step step=20 loss=2.5";
  EXPECT_TRUE(story.Tells(Entry(2, step)));
  EXPECT_FALSE(story.Tells(Entry(0, "[default1]:" + step)));
  EXPECT_FALSE(story.Tells(
      Entry(1, R"({"event":"step","step":20,"loss":2.5,"wall_ns":1795915947949000000})")));
  EXPECT_TRUE(story.Tells(Entry(2, step)));   // the worker itself has made it twice
  EXPECT_TRUE(story.Tells(Entry(2, kTime + " info summary steps=20 samples_per_s=7.1")));
  EXPECT_FALSE(story.Tells(Entry(
      1, R"({"event":"summary","steps":20,"samples_per_s":7.13,"wall_ns":1795915947949000000})")));
}

TEST_F(LogStoryOf, ACopyIsToldWhereItsWorkersFileIsNot) {
  LogStory story = Of({});
  story.Add({.path = "other/keelrun.log", .root = "other", .host = "", .who = "keelrun",
             .local_rank = {}, .stream = ""});
  EXPECT_FALSE(story.Tells(Entry(0, "[default1]:hello")));
  EXPECT_TRUE(story.Tells(Entry(0, "[default0]:hello")));
  EXPECT_TRUE(story.Tells(Entry(3, "[default1]:hello")));
  LogFilter filter;
  filter.local_ranks = {0};
  LogStory of_rank = Of(filter);
  EXPECT_TRUE(of_rank.Tells(Entry(0, "[default0]:hello")));
  EXPECT_FALSE(of_rank.Tells(Entry(0, "[default2]:hello")));
}

TEST_F(LogStoryOf, WhatAFilterHidesHidesNothingElse) {
  const std::string step = kTime + " info step step=20 loss=2.5";
  const std::string same = R"({"event":"step","step":20,"loss":2.5,"wall_ns":1795915947949000000})";
  LogFilter filter;
  filter.local_ranks = {1};
  LogStory of_rank = Of(filter);
  EXPECT_FALSE(of_rank.Tells(Entry(1, same)));
  EXPECT_TRUE(of_rank.Tells(Entry(2, step)));
  filter = {};
  filter.hosts = {"b"};
  LogStory of_host = Of(filter);
  EXPECT_FALSE(of_host.Tells(Entry(2, step)));
  EXPECT_TRUE(of_host.Tells(Entry(1, same)));
}

TEST_F(LogStoryOf, FiltersTell) {
  LogFilter filter;
  filter.local_ranks = {1};
  filter.least_level = "warn";
  LogStory story = Of(filter);
  EXPECT_TRUE(story.Tells(Entry(2, kTime + " warn straggler")));
  EXPECT_FALSE(story.Tells(Entry(2, kTime + " info step")));
  EXPECT_FALSE(story.Tells(Entry(2, "a line of the program")));
  EXPECT_TRUE(story.Tells(Entry(0, kTime + " error worker-died local_rank=1")));
  EXPECT_FALSE(story.Tells(Entry(0, kTime + " error worker-died local_rank=0")));

  filter = {};
  filter.hosts = {"b"};
  filter.only_events = true;
  filter.since = *ReadUtcStamp(kTime);
  LogStory other = Of(filter);
  EXPECT_FALSE(other.Tells(Entry(0, kTime + " info epoch")));
  EXPECT_TRUE(other.Tells(Entry(1, kTime + " info evaluation")));
  EXPECT_FALSE(other.Tells(Entry(1, kTime + " info step")));
  EXPECT_FALSE(other.Tells(Entry(1, "2026-11-29T01:32:27.947Z info evaluation")));
}

TEST_F(LogStoryOf, ALineStaysOneLineAndSaysWhatIsNotSure) {
  LogStory story = Of({});
  LogEntry entry = Entry(0, "\x1b[31mred\x01");
  entry.is_torn = true;
  entry.cut_bytes = 2048;
  const std::string text = story.Text(entry);
  EXPECT_EQ(text, "~1970-01-01T00:00:00.000Z a/keelrun  \\x1b[31mred\\x01 ... (2 KiB more) "
                  "(unfinished line)\n");
  const auto json = ParseJson(story.JsonLine(entry));
  ASSERT_OK(json);
  EXPECT_EQ((*json)["time_is_told"], false);
  EXPECT_EQ((*json)["torn"], true);
  EXPECT_EQ((*json)["host"], "a");
}

}  // namespace
}  // namespace keel
