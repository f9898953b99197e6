// What a training log says, to whom, and that its failures cost nothing else.
#include "trainer/log/train_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory_files.h"
#include "base/text.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

class TrainLogs : public testing::Test {
 protected:
  void SetUp() override {
    LogToCallback([this](std::string_view line) { lines_ += line; });
  }
  void TearDown() override { LogToStderr(); }

  TrainLogConfig Config() const {
    return {.every = 5, .steps = 20, .samples_per_step = 8, .jsonl = "/logs/run.jsonl"};
  }
  // Ten milliseconds pass, nine of them measured.
  void Step(TrainLog& log, uint64_t step, int rank = 0) {
    clock_.Advance(milliseconds(10));
    log.OnStep({.step = step,
                .loss = 0.1f,
                .learning_rate = 0.01,
                .rank = rank,
                .world = 2,
                .times = {.data = milliseconds(1), .forward = milliseconds(3),
                          .backward = milliseconds(5)}});
  }
  std::vector<Json> Entries() {
    std::vector<Json> entries;
    const auto text = ReadWhole(files_, "/logs/run.jsonl", 1 << 20);
    if (!text.ok()) return entries;
    for (const std::string& line : SplitList(*text, '\n')) {
      const auto json = ParseJson(line);
      if (json.ok()) entries.push_back(*json);
    }
    return entries;
  }

  MemoryFiles files_;
  ManualClock clock_;
  std::string lines_;
};

TEST_F(TrainLogs, WriteOneEntryEverySoManySteps) {
  {
    TrainLog log(Config(), files_, clock_);
    for (uint64_t step = 1; step <= 12; ++step) Step(log, step);
  }
  const std::vector<Json> entries = Entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].at("step"), 5);
  EXPECT_EQ(entries[1].at("step"), 10);
  EXPECT_EQ(entries[1].at("loss"), 0.1);
  EXPECT_EQ(entries[1].at("ms").at("forward"), 3.0);
  EXPECT_NEAR(entries[1].at("samples_per_s").get<double>(), 800, 1e-6);
  EXPECT_EQ(entries[2].at("event"), "summary");
  EXPECT_EQ(entries[2].at("steps"), 12);
  EXPECT_NEAR(entries[2].at("goodput").get<double>(), 0.9, 1e-9);
  EXPECT_THAT(lines_, HasSubstr("step step=5 data_epoch=0 loss=0.1 lr=0.01 samples_per_s=800"));
  EXPECT_THAT(lines_, HasSubstr("data_ms=1 forward_ms=3 backward_ms=5"));
}

TEST_F(TrainLogs, ComeFromTheFirstRankAloneAndGoOnWhenAnotherBecomesIt) {
  TrainLog other(Config(), files_, clock_);
  {
    TrainLog first(Config(), files_, clock_);
    for (uint64_t step = 1; step <= 5; ++step) Step(first, step, 0);
    for (uint64_t step = 1; step <= 5; ++step) Step(other, step, 1);
  }
  const size_t before = Entries().size();
  EXPECT_EQ(before, 2u);   // its step and its summary
  for (uint64_t step = 6; step <= 10; ++step) Step(other, step, 0);
  const std::vector<Json> entries = Entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[2].at("step"), 10);
}

TEST_F(TrainLogs, ALineThatAKilledWriterLeftIsEndedFirst) {
  ASSERT_OK(MakeDirs(files_, "/logs"));
  ASSERT_OK(WriteDurably(files_, "/logs/run.jsonl", R"({"event":"st)"));
  TrainLog log(Config(), files_, clock_);
  for (uint64_t step = 1; step <= 5; ++step) Step(log, step);
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_EQ(Entries()[0].at("step"), 5);
}

TEST_F(TrainLogs, AFileThatCannotBeWrittenIsToldOnceAndNothingElse) {
  TrainLogConfig config = Config();
  ASSERT_OK(WriteDurably(files_, "/file", "x"));
  config.jsonl = "/file/run.jsonl";
  config.tensorboard = "/file/curves";
  TrainLog log(config, files_, clock_);
  for (uint64_t step = 1; step <= 20; ++step) Step(log, step);
  const auto count = [&](const std::string& part) {
    size_t found = 0;
    for (size_t at = lines_.find(part); at != lines_.npos; at = lines_.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("training-log-lost what=jsonl"), 1u);
  EXPECT_EQ(count("training-log-lost what=tensorboard"), 1u);
  EXPECT_EQ(count(" step step="), 4u);
}

TEST_F(TrainLogs, NameAStragglerWhenItBecomesOne) {
  TrainLogConfig config = Config();
  config.stragglers.steps = 5;
  TrainLog log(config, files_, clock_);
  for (uint64_t step = 1; step <= 15; ++step) {
    const int64_t slow = step <= 5 ? 4'000'000 : 40'000'000;
    log.OnStep({.step = step, .rank = 0, .world = 3,
                .compute_ns = {4'000'000, slow, 2'000'000}, .lanes = {2, 2, 1}});
  }
  EXPECT_THAT(lines_, HasSubstr("straggler step=10 detail=\"rank 1: 20 ms per lane, the median "
                                "worker 2 ms\""));
  EXPECT_THAT(lines_, Not(HasSubstr("straggler step=5")));
  EXPECT_THAT(lines_, Not(HasSubstr("straggler step=15")));   // said already
}

TEST_F(TrainLogs, DrawAProgressLineAndWipeItBeforeALine) {
  std::string drawn;
  TrainLogConfig config = Config();
  config.every = 100;
  config.draw = [&](const std::string& text) { drawn += text; };
  {
    TrainLog log(config, files_, clock_);
    for (uint64_t step = 1; step <= 3; ++step) Step(log, step);
    EXPECT_EQ(drawn, "\r\x1b[Kstep 1 of 20 [=                   ] loss 0.1, 100 steps/s, 1 s left")
        << "the others came too soon after it";
  }
  EXPECT_TRUE(drawn.ends_with("left\r\x1b[K"));
}

TEST(ProgressLine, SaysWhatIsLeft) {
  EXPECT_EQ(ProgressLine(300, 600, 0.25f, 150, std::chrono::seconds(75)),
            "step 300 of 600 [==========          ] loss 0.25, 2 steps/s, 2 min 30 s left");
}

TEST(ProgressLine, FitsIntoARowOfTheTerminal) {
  const auto line = [](size_t columns) {
    return ProgressLine(300, 600, 0.25f, 150, std::chrono::seconds(75), columns);
  };
  EXPECT_THAT(line(76), HasSubstr("600 [==========          ] loss 0.25"));
  EXPECT_EQ(line(75), "step 300 of 600, loss 0.25, 2 steps/s, 2 min 30 s left");
  EXPECT_EQ(line(30), "step 300 of 600, loss 0.25, 2 ");
}

TEST(Stragglers, NobodyIsNamedForOneSlowStep) {
  std::deque<std::vector<int64_t>> times(10, {5, 5, 5});
  times.back() = {5, 500, 5};
  EXPECT_TRUE(DecideStragglers(times, {.steps = 10, .least_ns = 0}).ranks.empty());
}

TEST(Stragglers, OfTwoWorkersTheSlowOneIsNamedAndAnIdleOneNever) {
  const std::deque<std::vector<int64_t>> times(10, {0, 30, 10, 0});
  EXPECT_EQ(DecideStragglers(times, {.steps = 10, .least_ns = 0}).ranks, std::vector<int>{1});
}

TEST(Stragglers, BeginAnewWithAnotherNumberOfWorkers) {
  StragglerWindow window({.steps = 2, .least_ns = 0});
  window.Add({10, 90}, {1, 1});
  window.Add({10, 90}, {1, 1});
  EXPECT_EQ(window.Decide().ranks, std::vector<int>{1});
  window.Add({10, 90, 10}, {1, 1, 1});
  EXPECT_TRUE(window.Decide().ranks.empty());
}

// As between two workers that are equal, whose lanes take tenths of a millisecond.
TEST(Stragglers, NobodyIsNamedForADifferenceThatIsTooShortToMatter) {
  const std::deque<std::vector<int64_t>> noise(20, {300'000, 500'000});
  EXPECT_TRUE(DecideStragglers(noise, {}).ranks.empty());
  const std::deque<std::vector<int64_t>> slow(20, {300'000, 1'300'000});
  EXPECT_EQ(DecideStragglers(slow, {}).ranks, std::vector<int>{1});
}

TEST(Stragglers, OnlyStepsThatWereSlowCount) {
  StragglerWindow window({.steps = 5, .least_ns = 0});
  for (const int64_t time : {90, 10, 90, 10, 90}) window.Add({10, time}, {1, 1});
  EXPECT_EQ(window.Decide().ranks, std::vector<int>{1});
  EXPECT_EQ(window.StepsOf(1), 3);
  EXPECT_EQ(window.StepsOf(0), 0);
}

// Ranks are other workers in another membership, also in one of as many.
TEST_F(TrainLogs, StragglersAreOfOneMembershipAndNobodyIsClearedByAnother) {
  TrainLogConfig config = Config();
  config.stragglers.steps = 4;
  TrainLog log(config, files_, clock_);
  uint64_t step = 0;
  const auto make = [&](uint64_t last, int64_t epoch, const std::vector<int64_t>& compute_ns) {
    for (; step < last; ++step) {
      log.OnStep({.step = step + 1, .rank = 0, .compute_ns = compute_ns,
                  .lanes = std::vector<int>(compute_ns.size(), 1), .epoch = epoch});
    }
  };
  make(5, 1, {4'000'000, 40'000'000});
  EXPECT_THAT(lines_, HasSubstr("warn straggler step=5 detail=\"rank 1"));
  make(9, 1, {4'000'000, 40'000'000});
  make(10, 2, {4'000'000, 4'000'000});   // fewer of it than are judged
  EXPECT_THAT(lines_, Not(HasSubstr("straggler step=10")));
  make(15, 2, {4'000'000, 40'000'000});
  EXPECT_THAT(lines_, HasSubstr("warn straggler step=15 detail=\"rank 1"));
  make(18, 2, {4'000'000, 40'000'000});
  make(20, 2, {4'000'000, 4'000'000, 4'000'000});
  make(25, 3, {4'000'000, 4'000'000});
  EXPECT_THAT(lines_, Not(HasSubstr("no-straggler")));
}

}  // namespace
}  // namespace keel
