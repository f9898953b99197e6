// What may go and what stays, and how steps are found and named.
#include "ckpt/retention.h"

#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "ckpt/copy.h"
#include "ckpt/names.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using Partial = RetentionPolicy::Partial;

StepEntry Entry(uint64_t step, StepState state = StepState::kComplete) {
  StepEntry entry;
  entry.step = step;
  entry.state = state;
  return entry;
}

std::vector<uint64_t> Removed(const std::vector<StepEntry>& entries,
                              const RetentionPolicy& policy) {
  std::vector<uint64_t> steps;
  for (const auto& verdict : DecideRetention(entries, policy)) {
    EXPECT_FALSE(verdict.reason.empty());
    if (verdict.remove) steps.push_back(verdict.step);
  }
  return steps;
}

using Steps = std::vector<uint64_t>;

TEST(Retention, KeepsTheLast) {
  const std::vector<StepEntry> entries{Entry(1), Entry(2), Entry(3), Entry(4)};
  EXPECT_EQ(Removed(entries, {.keep_last = 2}), (Steps{1, 2}));
  EXPECT_EQ(Removed(entries, {.keep_last = 9}), Steps{});
  EXPECT_EQ(Removed(entries, {.keep_last = 0}), (Steps{1, 2, 3}));
}

// A resume passed 400 and 500 over: they could not be read.
TEST(Retention, WhatAJobHasJustMadeDoesNotGoBecauseOfStepsThatItCouldNotRead) {
  const std::vector<StepEntry> entries{Entry(300), Entry(310), Entry(400), Entry(500)};
  EXPECT_EQ(Removed(entries, {.keep_last = 1}), (Steps{300, 310, 400}));
  EXPECT_EQ(Removed(entries, {.keep_last = 1, .made = 310}), Steps{300});
  EXPECT_EQ(Removed(entries, {.keep_last = 2, .made = 310}), Steps{});
  EXPECT_EQ(Removed(entries, {.keep_last = 1, .made = 500}), (Steps{300, 310, 400}));
}

TEST(Retention, KeepsMultiplesAndPinnedOnes) {
  std::vector<StepEntry> entries{Entry(1000), Entry(1500), Entry(1600), Entry(2000), Entry(2100)};
  entries[1].pinned = true;
  EXPECT_EQ(Removed(entries, {.keep_last = 1, .keep_every = 1000}), Steps{1600});
}

// As where saves come late, or by the clock.
TEST(Retention, KeepsTheFirstAfterEachMultipleThatIsNoStepOfASave) {
  std::vector<StepEntry> entries{Entry(90), Entry(117), Entry(163), Entry(200), Entry(246),
                                 Entry(390, StepState::kPartial), Entry(391), Entry(395),
                                 Entry(500), Entry(520)};
  EXPECT_EQ(Removed(entries, {.keep_last = 1, .keep_every = 100}), (Steps{90, 163, 246, 390, 395}));
  // What a resume passed over does not stand for what the job makes.
  EXPECT_EQ(Removed(entries, {.keep_last = 1, .keep_every = 1000, .made = 395}),
            (Steps{90, 117, 163, 200, 246, 390, 391}));
}

TEST(Retention, DoesNotCountWhatIsNotComplete) {
  const std::vector<StepEntry> entries{Entry(1), Entry(2), Entry(3, StepState::kDamaged),
                                       Entry(4, StepState::kPartial)};
  EXPECT_EQ(Removed(entries, {.keep_last = 2}), Steps{});
  EXPECT_EQ(Removed(entries, {.keep_last = 1}), Steps{1});
}

TEST(Retention, PartialOnesGoByPolicyUnlessAlive) {
  std::vector<StepEntry> entries{Entry(1, StepState::kPartial), Entry(2, StepState::kDamaged),
                                 Entry(3), Entry(4, StepState::kPartial),
                                 Entry(5, StepState::kNewer)};
  EXPECT_EQ(Removed(entries, {.partial = Partial::kKeep}), Steps{});
  EXPECT_EQ(Removed(entries, {.partial = Partial::kRemoveOlder}), Steps{1});
  EXPECT_EQ(Removed(entries, {.partial = Partial::kRemoveAll}), (Steps{1, 4}));
  EXPECT_EQ(Removed(entries, {.partial = Partial::kRemoveAll, .remove_damaged = true}),
            (Steps{1, 2, 4}));
  entries[0].in_progress = true;
  EXPECT_EQ(Removed(entries, {.partial = Partial::kRemoveAll}), Steps{4});
}

class CatalogTest : public testing::Test {
 protected:
  void Save(uint64_t step) {
    MemorySource source(state_.Spans());
    ASSERT_OK(SaveCheckpoint(files_, PlanOf(state_, "/c", step, step, 256), source, {}, 77));
  }
  std::string Dir(uint64_t step) { return JoinPath("/c", StepDirName(step)); }

  MemoryFiles files_;
  TestState state_ = TestState::Make(1, 200);
};

TEST_F(CatalogTest, ListsWhatIsThereAndWhyItIsNotComplete) {
  for (const uint64_t step : {10u, 20u, 30u}) Save(step);
  ASSERT_OK(files_.MakeDir(Dir(40)));
  ASSERT_OK(files_.MakeDir("/c/notes"));
  ASSERT_OK(WriteDurably(files_, JoinPath(Dir(20), kManifestName), "{}"));
  ASSERT_OK_AND_ASSIGN(const auto steps, ListSteps(files_, "/c"));
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].state, StepState::kComplete);
  EXPECT_EQ(steps[0].writers, 1u);
  EXPECT_EQ(steps[0].saved_at_ns, 77);
  EXPECT_GT(steps[0].stored_bytes, 0u);
  EXPECT_EQ(steps[1].state, StepState::kDamaged);
  EXPECT_EQ(steps[2].state, StepState::kComplete);
  EXPECT_EQ(steps[3].state, StepState::kPartial);
  EXPECT_NE(steps[3].reason.find("no manifest"), std::string::npos);
}

TEST_F(CatalogTest, OneStepThatCannotBeLookedAtHidesNoOther) {
  for (const uint64_t step : {10u, 20u, 30u}) Save(step);
  FaultyFiles faulty(files_);
  faulty.Plan({.path_part = Dir(20) + "/manifest.json", .lasting = true});
  ASSERT_OK_AND_ASSIGN(const auto steps, ListSteps(faulty, "/c"));
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].state, StepState::kDamaged);
  EXPECT_TRUE(steps[1].unreadable);
  EXPECT_EQ(steps[2].state, StepState::kComplete);
}

TEST_F(CatalogTest, NoCheckpointIsSavedInAnother) {
  Save(10);
  MemorySource source(state_.Spans());
  for (const std::string& root : {Dir(10), Dir(10) + "/", Dir(11)}) {
    const auto saved = SaveCheckpoint(files_, PlanOf(state_, root, 5, 5, 256), source, {}, 77);
    ASSERT_FALSE(saved.ok());
    EXPECT_EQ(saved.error().code, Code::kInvalid) << saved.error().message;
    EXPECT_NE(saved.error().message.find("name the directory above"), std::string::npos);
  }
  EXPECT_EQ(files_.List("/c")->size(), 1u);
}

TEST_F(CatalogTest, ResolvesTheWaysToNameACheckpoint) {
  Save(10);
  Save(20);
  ASSERT_OK(files_.MakeDir(Dir(30)));
  for (const std::string text : {"/c", "/c/", "/c@latest", "/c@20", "/c/step-000000020"}) {
    ASSERT_OK_AND_ASSIGN(const std::string dir, ResolveCheckpoint(files_, text));
    EXPECT_EQ(dir, text == "/c/" ? "/c/step-000000020" : Dir(20)) << text;
  }
  EXPECT_EQ(*ResolveCheckpoint(files_, "/c@10"), Dir(10));
  EXPECT_EQ(*ResolveCheckpoint(files_, "/c@30"), Dir(30));  // named, so its error is told
  EXPECT_EQ(ResolveCheckpoint(files_, "/c@25").error().code, Code::kNotFound);
  EXPECT_EQ(ResolveCheckpoint(files_, "/c@newest").error().code, Code::kInvalid);
  EXPECT_FALSE(ResolveCheckpoint(files_, "/nowhere").ok());
}

TEST_F(CatalogTest, RetentionRemovesAndKeepsPinned) {
  for (const uint64_t step : {10u, 20u, 30u, 40u}) Save(step);
  ASSERT_OK(Pin(files_, Dir(10)));
  ASSERT_OK_AND_ASSIGN(const auto planned, ApplyRetention(files_, "/c", {.keep_last = 1}, true));
  ASSERT_OK_AND_ASSIGN(const auto before, ListSteps(files_, "/c"));
  EXPECT_EQ(before.size(), 4u);
  ASSERT_OK_AND_ASSIGN(const auto done, ApplyRetention(files_, "/c", {.keep_last = 1}));
  EXPECT_EQ(done.bytes_freed, planned.bytes_freed);
  EXPECT_GT(done.bytes_freed, 0u);
  ASSERT_OK_AND_ASSIGN(const auto after, ListSteps(files_, "/c"));
  ASSERT_EQ(after.size(), 2u);
  EXPECT_TRUE(after[0].pinned);
  EXPECT_EQ(after[1].step, 40u);
  ASSERT_OK(Unpin(files_, Dir(10)));
  ASSERT_OK(Unpin(files_, Dir(10)));
  ASSERT_OK(ApplyRetention(files_, "/c", {.keep_last = 1}));
  EXPECT_EQ(ListSteps(files_, "/c")->size(), 1u);
}

TEST_F(CatalogTest, AForeignFileSavesItsDirectory) {
  Save(10);
  Save(20);
  ASSERT_OK(WriteDurably(files_, JoinPath(Dir(10), "thesis.txt"), "mine"));
  EXPECT_FALSE(ApplyRetention(files_, "/c", {.keep_last = 1}).ok());
  EXPECT_TRUE(*Exists(files_, JoinPath(Dir(10), "thesis.txt")));
}

TEST_F(CatalogTest, AStepThatCannotGoKeepsNoOther) {
  for (const uint64_t step : {10u, 20u, 30u}) Save(step);
  ASSERT_OK(WriteDurably(files_, JoinPath(Dir(10), "thesis.txt"), "mine"));
  const auto retained = ApplyRetention(files_, "/c", {.keep_last = 1});
  ASSERT_FALSE(retained.ok());
  EXPECT_NE(retained.error().message.find(Dir(10)), std::string::npos) << retained.error().message;
  EXPECT_FALSE(*Exists(files_, Dir(20)));
}

TEST_F(CatalogTest, DeadAttemptsAreSweptFromCompleteSteps) {
  const std::string dead = JoinPath(Dir(10), "00000000deadbeef-shard-0000-of-0002.keel");
  ASSERT_OK(MakeDirs(files_, Dir(10)));
  ASSERT_OK(WriteDurably(files_, dead, "half"));
  Save(10);
  ASSERT_OK(ApplyRetention(files_, "/c", {}));
  EXPECT_FALSE(*Exists(files_, dead));
  ASSERT_OK_AND_ASSIGN(const auto entry, LookAtStep(files_, Dir(10)));
  EXPECT_EQ(entry.state, StepState::kComplete);
}

TEST_F(CatalogTest, NoCheckpointIsCopiedIntoAnother) {
  Save(10);
  ASSERT_OK_AND_ASSIGN(const auto from, OpenCheckpoint(files_, "/c"));
  for (const std::string& root : {Dir(10), Dir(10) + "/", std::string("/to/step-000000010")}) {
    const auto copied = CopyCheckpoint(files_, *from, root, nullptr);
    ASSERT_FALSE(copied.ok()) << root;
    EXPECT_EQ(copied.error().code, Code::kInvalid) << copied.error().message;
    const std::string above = root.starts_with("/c") ? "/c" : "/to";
    EXPECT_TRUE(copied.error().message.ends_with("name the directory above, " + above))
        << copied.error().message;
  }
  EXPECT_EQ(files_.List(Dir(10))->size(), 2u);
  EXPECT_FALSE(*Exists(files_, "/to"));
}

TEST_F(CatalogTest, ADamagedCopyIsNotCalledCommitted) {
  Save(10);
  ASSERT_OK_AND_ASSIGN(const auto from, OpenCheckpoint(files_, "/c"));
  for (const bool loses_shard : {false, true}) {
    const std::string root = loses_shard ? "/shard" : "/manifest";
    const std::string dir = root + "/step-000000010", shard = from->manifest().shards[0].file;
    ASSERT_OK(CopyCheckpoint(files_, *from, root, nullptr));
    const Status harmed = loses_shard ? files_.Remove(JoinPath(dir, shard))
                                      : WriteDurably(files_, JoinPath(dir, kManifestName), "{}");
    ASSERT_OK(harmed);
    const auto copied = CopyCheckpoint(files_, *from, root, nullptr);
    ASSERT_FALSE(copied.ok());
    EXPECT_EQ(copied.error().code, Code::kExists);
    EXPECT_NE(copied.error().message.find("step 10, which is damaged there: "), std::string::npos)
        << copied.error().message;
    EXPECT_NE(copied.error().message.find("move it away"), std::string::npos);
    EXPECT_EQ(*Exists(files_, JoinPath(dir, shard)), !loses_shard) << "it is left as it was";
  }
}

}  // namespace
}  // namespace keel
