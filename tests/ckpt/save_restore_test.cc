// What was saved comes back bit for bit, whoever writes and whoever reads.
#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "base/posix_files.h"
#include "ckpt/save.h"
#include "ckpt/snapshot.h"
#include "tests/support/temp_dir.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

TEST(SaveAndRestore, GiveTheSameBitsOnTheRealDisk) {
  const TempDir dir;
  PosixFiles files;
  TestState state = TestState::Make(1, 3'000'000);
  MemorySource source(state.Spans());
  const SavePlan plan = PlanOf(state, dir.path() + "/ckpts", 1200, 7);
  ASSERT_OK_AND_ASSIGN(const CommitReport report,
                       SaveCheckpoint(files, plan, source, {.write_threads = 2}, 123));
  EXPECT_LT(report.stored_bytes, report.content_bytes);

  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files, report.step_dir));
  EXPECT_EQ(checkpoint->manifest().description.metadata, plan.description.metadata);
  EXPECT_EQ(checkpoint->manifest().saved_at_ns, 123);
  TestState loaded = state.Blank();
  ASSERT_OK_AND_ASSIGN(const RestoreReport restored, Restore(*checkpoint, loaded.Targets(), {}));
  EXPECT_EQ(loaded.bytes, state.bytes);
  EXPECT_EQ(restored.bytes, report.content_bytes);
  EXPECT_OK(CheckRestored(*checkpoint, loaded.Targets()));
}

// Every number of writers is read back by every number of readers.
TEST(SaveAndRestore, AnyNumberOfWritersAndReadersGoTogether) {
  TestState state = TestState::Make(2, 6000);
  for (uint32_t writers = 1; writers <= 8; ++writers) {
    MemoryFiles files;
    ASSERT_OK(files.MakeDir("/c"));
    SavePlan plan = PlanOf(state, "/c", 5, writers, 1024);
    plan.parts = writers;
    std::vector<std::unique_ptr<Save>> saves;
    MemorySource source(state.Spans());
    for (plan.part = 0; plan.part < writers; ++plan.part) {
      ASSERT_OK_AND_ASSIGN(auto save, Save::Begin(files, plan));
      ASSERT_OK(save->WriteShard(source, {}));
      saves.push_back(std::move(save));
    }
    ASSERT_OK(saves[0]->Commit(0));
    ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files, saves[0]->step_dir()));
    for (uint32_t readers = 1; readers <= 8; ++readers) {
      TestState loaded = state.Blank();
      uint64_t bytes = 0;
      for (uint32_t part = 0; part < readers; ++part) {
        ASSERT_OK_AND_ASSIGN(
            const RestoreReport report,
            Restore(*checkpoint, loaded.Targets(), {.part = part, .parts = readers}));
        bytes += report.bytes;
      }
      EXPECT_EQ(bytes, checkpoint->layout().tensor_bytes());
      EXPECT_EQ(loaded.bytes, state.bytes) << writers << " writers, " << readers << " readers";
      EXPECT_OK(CheckRestored(*checkpoint, loaded.Targets()));
    }
  }
}

// A source that is no memory, such as another file.
class StreamedSource : public TensorSource {
 public:
  explicit StreamedSource(const TestState& state) : state_(state) {}
  const std::byte* Borrow(size_t, uint64_t, size_t) override { return nullptr; }
  Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into) override {
    std::copy_n(state_.bytes[tensor].begin() + static_cast<ptrdiff_t>(offset), into.size(),
                into.begin());
    return Ok();
  }

 private:
  const TestState& state_;
};

// Nor do threads, direct output, or a copied share make a difference.
TEST(SaveAndRestore, AShardsBytesDoNotDependOnHowTheyWereWritten) {
  TestState state = TestState::Make(4, 200'000);
  const SavePlan plan = PlanOf(state, "/c", 5, 1, 4096);
  const auto digest_of = [&](TensorSource& source, const WriteOptions& options, bool direct) {
    MemoryFiles files(MemoryFiles::Options{.grants_direct = direct});
    EXPECT_OK(files.MakeDir("/c"));
    SavePlan part = plan;
    part.part = 1;
    part.parts = 3;
    const auto save = Save::Begin(files, part);
    const auto shard = (*save)->WriteShard(source, options);
    EXPECT_OK(shard);
    return shard->digest;
  };
  MemorySource memory(state.Spans());
  StreamedSource streamed(state);
  CopiedSnapshot copied;
  copied.Reserve(plan.description.layout, 0, 4, false);   // of another share, too small
  copied.Copy(plan.description.layout, 1, 3, state.Spans());
  const Digest expected = digest_of(memory, {}, true);
  EXPECT_EQ(digest_of(memory, {.compress_threads = 3, .write_threads = 2}, true), expected);
  EXPECT_EQ(digest_of(memory, {.direct = false}, true), expected);
  EXPECT_EQ(digest_of(memory, {}, false), expected);
  EXPECT_EQ(digest_of(streamed, {}, true), expected);
  EXPECT_EQ(digest_of(copied, {}, true), expected);
}

TEST(SaveAndRestore, MoreWritersThanFramesLeaveSomeWithNothing) {
  TestState state;
  Random random(6);
  state.Add("w", Dtype::kF32, {3}, random);
  MemoryFiles files;
  SavePlan plan = PlanOf(state, "/c", 5, 1);
  plan.parts = 3;
  MemorySource source(state.Spans());
  std::vector<std::unique_ptr<Save>> saves;
  for (plan.part = 0; plan.part < 3; ++plan.part) {
    ASSERT_OK_AND_ASSIGN(auto save, Save::Begin(files, plan));
    ASSERT_OK(save->WriteShard(source, {}));
    saves.push_back(std::move(save));
  }
  ASSERT_OK(saves[2]->Commit(0));
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files, saves[0]->step_dir()));
  TestState loaded = state.Blank();
  ASSERT_OK(Restore(*checkpoint, loaded.Targets(), {}));
  EXPECT_EQ(loaded.bytes, state.bytes);
}

TEST(SaveAndRestore, WhatAnotherVersionOfTheProgramWroteIsRead) {
  TestState state = TestState::Make(9, 500);
  MemoryFiles files;
  SavePlan plan = PlanOf(state, "/c", 5, 1);
  plan.description.writer = "evenkeel 9.9.9";
  MemorySource source(state.Spans());
  ASSERT_OK_AND_ASSIGN(const auto report, SaveCheckpoint(files, plan, source, {}, 0));
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files, report.step_dir));
  EXPECT_EQ(checkpoint->manifest().description.writer, "evenkeel 9.9.9");
}

class RestoreTest : public testing::Test {
 protected:
  void SetUp() override {
    MemorySource source(state_.Spans());
    ASSERT_OK_AND_ASSIGN(const CommitReport report,
                         SaveCheckpoint(files_, PlanOf(state_, "/c", 5, 1), source, {}, 0));
    ASSERT_OK_AND_ASSIGN(checkpoint_, Checkpoint::Open(files_, report.step_dir));
  }

  MemoryFiles files_;
  TestState state_ = TestState::Make(8, 1000);
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(RestoreTest, ListsAllThatDiffersBothWaysAndTouchesNothing) {
  TestState program = state_.Blank();
  program.specs[0].shape = {8, program.specs[0].shape[0]};  // model.weight, transposed
  program.specs[2].dtype = Dtype::kF16;                     // model.half
  program.specs[4].name = "model.bais";                     // model.bias, misspelt
  const TestState before = program;
  const auto restored = Restore(*checkpoint_, program.Targets(), {});
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, Code::kInvalid);
  const std::string& message = restored.error().message;
  for (const char* part :
       {"4 problems", "'model.weight': the checkpoint has f32 [62, 8], the program f32 [8, 62]",
        "'model.half': the checkpoint has bf16 [253], the program f16 [253]",
        "'model.bais' (f32 [7]): missing in the checkpoint",
        "'model.bias' (f32 [7]): in the checkpoint, but not in the program"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in\n" << message;
  }
  EXPECT_EQ(program.bytes, before.bytes);
}

TEST_F(RestoreTest, TakesAPartOnlyWhenAskedByPattern) {
  TestState program = state_.Blank();
  const auto restored = Restore(*checkpoint_, program.Targets(), {.only = {"model.*"}});
  ASSERT_OK(restored);
  for (size_t i = 0; i < program.specs.size(); ++i) {
    const bool wanted = program.specs[i].name.starts_with("model.");
    EXPECT_EQ(program.bytes[i], wanted ? state_.bytes[i] : state_.Blank().bytes[i])
        << program.specs[i].name;
  }
}

TEST_F(RestoreTest, APatternWithoutATensorIsAnError) {
  TestState program = state_.Blank();
  const auto restored = Restore(*checkpoint_, program.Targets(), {.only = {"modle.*"}});
  ASSERT_FALSE(restored.ok());
  EXPECT_NE(restored.error().message.find("'modle.*'"), std::string::npos);
}

TEST_F(RestoreTest, FilledRangesOfAllPartsCoverEveryByteOnce) {
  TestState program = state_.Blank();
  std::vector<std::vector<int>> covered;
  for (const auto& bytes : program.bytes) covered.emplace_back(bytes.size(), 0);
  for (uint32_t part = 0; part < 3; ++part) {
    ASSERT_OK_AND_ASSIGN(const auto report,
                         Restore(*checkpoint_, program.Targets(), {.part = part, .parts = 3}));
    for (const FilledRange& range : report.filled) {
      for (uint64_t i = 0; i < range.bytes; ++i) ++covered[range.target][range.offset + i];
    }
  }
  for (const auto& tensor : covered) EXPECT_EQ(tensor, std::vector<int>(tensor.size(), 1));
}

TEST_F(RestoreTest, CheckRestoredNamesTensorsThatDiffer) {
  TestState program = state_;
  program.bytes[4][2] ^= std::byte{1};
  const Status status = CheckRestored(*checkpoint_, program.Targets());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("'model.bias'"), std::string::npos);
}

}  // namespace
}  // namespace keel
