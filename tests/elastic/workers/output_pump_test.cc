// What becomes of workers' output where their files take all of it, a part, or nothing.
#include "elastic/workers/output_pump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>

#include "base/faulty_files.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr size_t kMemory = 1000;

TimePoint Limit() { return RealClock().Monotonic() + 60s; }

class OutputPumpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(pump_, OutputPump::Start(files_, lost_));
    Open(spool_);
  }
  void Open(std::shared_ptr<OutputSpool> spool) {
    ASSERT_OK_AND_ASSIGN(source_, pump_->Open(path_, std::move(spool)));
  }
  void Write(const std::string& text) const {
    ASSERT_EQ(write(source_.write.number(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void Finish() { EXPECT_TRUE(pump_->Finish({source_.number}, Limit())); }
  void FillDisk(uint64_t taken = 0, bool lasting = true) {
    files_.Plan({.op = FileOp::kWriteAt, .error_number = ENOSPC, .lasting = lasting,
                 .written_bytes = taken});
  }
  // All that whoever shows it gets.
  std::string Shown() const {
    std::string shown;
    std::array<std::byte, 7> piece;
    for (;;) {
      const Result<size_t> got = spool_->Read(piece);
      EXPECT_OK(got);
      if (!got.ok() || *got == 0) return shown;
      shown.append(reinterpret_cast<const char*>(piece.data()), *got);
    }
  }

  TempDir folder_;
  const std::string path_ = folder_.File("stdout.log");
  PosixFiles below_;
  FaultyFiles files_{below_};
  std::vector<LostBytes> told_;
  LostOutput lost_{[this](const LostBytes& lost) { told_.push_back(lost); }};
  const std::shared_ptr<OutputSpool> spool_ = std::make_shared<OutputSpool>(kMemory);
  std::unique_ptr<OutputPump> pump_;
  OutputPump::Source source_;
};

// As after a remount, or a handle that NFS calls stale.
TEST_F(OutputPumpTest, AFileThatFailsIsOpenedAnew) {
  Write("first\n");
  while (ReadFile(path_) != "first\n") {
  }
  files_.Plan({.op = FileOp::kWriteAt, .error_number = ESTALE});
  Write("lost\n");
  while (lost_.All().empty()) {
  }
  ASSERT_OK(below_.Remove(path_));
  Write("last\n");
  Finish();
  EXPECT_EQ(ReadFile(path_), "last\n");
}

TEST_F(OutputPumpTest, OpeningWaitsForNoFileSystemThatIsSilent) {
  Finish();
  // They live as long as the process, as the call does that gets no answer.
  static auto& below = *new PosixFiles;
  static auto& silent = *new FaultyFiles(below);
  static auto& answers = *new std::promise<void>;
  silent.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kOpen, .act = [] {
    answers.get_future().wait();
  }});
  ASSERT_OK_AND_ASSIGN(pump_, OutputPump::Start(silent, lost_));
  Open(nullptr);
  EXPECT_EQ(silent.strikes(), 1);
  Write("said meanwhile\n");
  Finish();   // the pump itself opens it, and is answered
  EXPECT_EQ(ReadFile(path_), "said meanwhile\n");
  answers.set_value();
}

TEST_F(OutputPumpTest, WhatAWorkerWritesIsInItsFileAndShown) {
  std::string much;
  for (int i = 0; i < 50'000; ++i) much += "line " + std::to_string(i) + "\n";
  for (size_t at = 0; at < much.size(); at += 1000) Write(much.substr(at, 1000));
  Finish();
  EXPECT_EQ(ReadFile(path_), much);
  EXPECT_EQ(Shown(), much);
  EXPECT_TRUE(spool_->ended());
  EXPECT_TRUE(lost_.All().empty());
}

TEST_F(OutputPumpTest, AFileIsThereBeforeAnythingIsWritten) {
  EXPECT_OK(below_.Stat(path_));
  Finish();
  EXPECT_EQ(ReadFile(path_), "");
}

TEST_F(OutputPumpTest, WhatAFullDiskDoesNotTakeIsShownAndToldOf) {
  Write("first\n");
  Finish();
  FillDisk();
  EXPECT_EQ(Shown(), "first\n");
  Open(spool_);
  Write("second\n");
  Write("third\n");
  Finish();
  EXPECT_EQ(ReadFile(path_), "first\n");
  EXPECT_EQ(Shown(), "second\nthird\n");
  const std::vector<LostBytes> lost = lost_.All();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].where, path_);
  EXPECT_EQ(lost[0].bytes, 13u);
  EXPECT_THAT(lost[0].why, HasSubstr("No space left on device"));
  ASSERT_EQ(told_.size(), 1u) << "once, until a pause is over";
}

TEST_F(OutputPumpTest, OfAPieceThatTheFileTookInPartTheRestIsShownToo) {
  FillDisk(3);
  Write("sentence\n");
  Finish();
  EXPECT_EQ(ReadFile(path_), "sen");
  EXPECT_EQ(Shown(), "sentence\n");
  EXPECT_EQ(lost_.All().at(0).bytes, 6u);
}

TEST_F(OutputPumpTest, AFileThatTakesBytesAgainGetsThoseThatComeThen) {
  FillDisk(0, false);
  Write("lost\n");
  Finish();
  Open(spool_);
  Write("kept\n");
  Finish();
  EXPECT_EQ(ReadFile(path_), "kept\n");
  EXPECT_EQ(Shown(), "lost\nkept\n");
}

TEST_F(OutputPumpTest, WhereNeitherDiskNorConsoleTakesItMemoryIsBounded) {
  FillDisk();
  const std::string much(60'000, 'x');
  Write(much);
  Finish();
  EXPECT_EQ(Shown(), much.substr(0, kMemory));
  const std::vector<LostBytes> lost = lost_.All();
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[0].bytes, much.size());
  EXPECT_EQ(lost[1].where, "the console, of " + path_);
  EXPECT_EQ(lost[1].bytes, much.size() - kMemory);
}

TEST_F(OutputPumpTest, AFileThatCannotBeOpenedIsTriedAgain) {
  files_.Plan({.op = FileOp::kOpen, .error_number = ENOSPC});
  const std::shared_ptr<OutputSpool> nobody;
  Open(nobody);
  Write("here\n");
  Finish();
  EXPECT_EQ(ReadFile(path_), "here\n");
}

// As log rotation does it.
TEST_F(OutputPumpTest, AnEmptiedFileIsWrittenFromItsBeginning) {
  Write("before the cut\n");
  Finish();
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  Open(spool_);
  Write("new\n");
  Finish();
  EXPECT_EQ(ReadFile(path_), "new\n");
  EXPECT_THAT(Shown(), HasSubstr("new\n"));
}

TEST_F(OutputPumpTest, ADescendantThatWritesOnReachesTheFile) {
  Write("worker\n");
  Finish();
  Write("descendant\n");
  EXPECT_TRUE(pump_->Stop(Limit()));
  EXPECT_EQ(ReadFile(path_), "worker\ndescendant\n");
  EXPECT_EQ(Shown(), "worker\n");
}

TEST_F(OutputPumpTest, AWorkerThatClosesItsStreamEndsIt) {
  Write("all\n");
  source_.write.Close();
  Finish();
  EXPECT_TRUE(spool_->ended());
  EXPECT_EQ(Shown(), "all\n");
}

TEST(LostOutput, IsToldAtFirstAndThenMoreAndMoreSeldom) {
  std::vector<uint64_t> told;
  LostOutput lost([&](const LostBytes& one) { told.push_back(one.bytes); });
  TimePoint now{100s};
  for (int second = 0; second <= 70; ++second) lost.Note("a", 1, "full", now + second * 1s);
  EXPECT_EQ(told, (std::vector<uint64_t>{1, 11, 31, 71}));
  lost.Note("b", 5, "full", now);
  EXPECT_EQ(told.back(), 5u);
  EXPECT_EQ(lost.All(), (std::vector<LostBytes>{{"a", 71, "full"}, {"b", 5, "full"}}));
}

}  // namespace
}  // namespace keel
