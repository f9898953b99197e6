// Checkpoints that were copied into a bucket are found, verified and loaded there, as in a
// directory.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/memory_objects.h"
#include "base/object_files.h"
#include "base/upload_age.h"
#include "ckpt/catalog.h"
#include "ckpt/copy.h"
#include "ckpt/put_aside.h"
#include "ckpt/retention.h"
#include "ckpt/step_place.h"
#include "ckpt/verify.h"
#include "tests/ckpt/into_bucket.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

class InABucket : public testing::Test {
 protected:
  void SetUp() override {
    for (const uint64_t step : {100, 200}) {
      MemorySource source(state_.Spans());
      const SavePlan plan = PlanOf(state_, "/c", step, step, 4096);
      ASSERT_OK(SaveCheckpoint(disk_, plan, source, {}, 0));
    }
    CopyIntoBucket(disk_, "/c", bucket_, "run");
  }

  MemoryFiles disk_;
  MemoryObjects bucket_;
  ObjectFiles files_{bucket_};
  TestState state_ = TestState::Make(3, 100'000);
};

TEST_F(InABucket, TheNewestIsFoundVerifiedAndLoaded) {
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(files_, "s3://bucket/run"));
  EXPECT_EQ(checkpoint->manifest().description.step, 200u);
  ASSERT_OK_AND_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {}));
  EXPECT_TRUE(damages.empty());
  TestState loaded = state_.Blank();
  ASSERT_OK(Restore(*checkpoint, loaded.Targets(), {}));
  EXPECT_EQ(loaded.bytes, state_.bytes);
}

TEST_F(InABucket, EachWayToNameAStepLeadsThere) {
  for (const char* name : {"s3://bucket/run@100", "s3://bucket/run/@100",
                           "s3://bucket/run/step-000000100", "s3://bucket/run/step-000000100/"}) {
    ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(files_, name));
    EXPECT_EQ(checkpoint->manifest().description.step, 100u) << name;
  }
  EXPECT_EQ(OpenCheckpoint(files_, "s3://bucket/run@300").error().code, Code::kNotFound);
  EXPECT_EQ(OpenCheckpoint(files_, "s3://bucket/other").error().code, Code::kNotFound);
}

TEST_F(InABucket, TheListSaysWhatIsThereAndWhatIsDamaged) {
  ASSERT_OK_AND_ASSIGN(const auto whole, ListSteps(files_, "s3://bucket/run"));
  ASSERT_OK_AND_ASSIGN(const auto on_disk, ListSteps(disk_, "/c"));
  ASSERT_EQ(whole.size(), 2u);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i].state, StepState::kComplete) << whole[i].reason;
    EXPECT_EQ(whole[i].stored_bytes, on_disk[i].stored_bytes);
    EXPECT_EQ(whole[i].attempt, on_disk[i].attempt);
  }
  const std::string shard = ShardFileName({whole[1].attempt, 0, 1});
  ASSERT_OK(bucket_.Remove({"run/step-000000200/" + shard}));
  ASSERT_OK(bucket_.Remove({"run/step-000000100/manifest.json"}));
  ASSERT_OK_AND_ASSIGN(const auto broken, ListSteps(files_, "s3://bucket/run"));
  EXPECT_EQ(broken[0].state, StepState::kPartial);
  EXPECT_EQ(broken[1].state, StepState::kDamaged);
  EXPECT_NE(broken[1].reason.find(shard), std::string::npos) << broken[1].reason;
}

// --- Saving there ---

// Lets something happen just before the next request of a kind.
class InterposedObjects : public MemoryObjects {
 public:
  void BeforeUnfinished(std::function<void()> act) { before_unfinished_ = std::move(act); }
  void BeforeUpload(const std::string& ending, std::function<void()> act) {
    ending_ = ending;
    before_upload_ = std::move(act);
  }
  void RefuseToTellOfParts(Code code) { refusal_ = code; }

  Result<int64_t> LastWritten(const UnfinishedObject& unfinished) override {
    if (refusal_) return Error{*refusal_, "no right to list parts"};
    return MemoryObjects::LastWritten(unfinished);
  }
  Result<std::vector<UnfinishedObject>> Unfinished(const std::string& prefix) override {
    if (const auto act = std::exchange(before_unfinished_, nullptr)) act();
    return MemoryObjects::Unfinished(prefix);
  }
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key,
                                               uint64_t bytes_max) override {
    if (key.ends_with(ending_)) {
      if (const auto act = std::exchange(before_upload_, nullptr)) act();
    }
    return MemoryObjects::Upload(key, bytes_max);
  }

 private:
  std::function<void()> before_unfinished_;
  std::function<void()> before_upload_;   // of a key that ends so
  std::string ending_;
  std::optional<Code> refusal_;
};

TEST_F(InABucket, WhatIsNotOursIsToldAndStaysAndAFoldersMarkGoes) {
  ASSERT_OK(bucket_.Replace("run/step-000000100/notes.txt", "mine"));
  const auto retained = ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1});
  ASSERT_FALSE(retained.ok());
  EXPECT_NE(retained.error().message.find("it holds 'notes.txt'"), std::string::npos)
      << retained.error().message;
  EXPECT_EQ(*ReadWhole(files_, "s3://bucket/run/step-000000100/notes.txt", 99), "mine");
  ASSERT_OK(bucket_.Remove({"run/step-000000100/notes.txt"}));
  ASSERT_OK(bucket_.Replace("run/step-000000050/", ""));
  bucket_.Pass(kBucketQuiet);
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  const auto left = ListSteps(files_, "s3://bucket/run");
  ASSERT_OK(left);
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().step, 200u);
}

class SavedInABucket : public testing::Test {
 protected:
  Result<CommitReport> SaveStep(uint64_t step, uint64_t attempt) {
    MemorySource source(state_.Spans());
    return SaveCheckpoint(files_, PlanOf(state_, "s3://bucket/run", step, attempt, 4096), source,
                          {.write_threads = 3}, 0);
  }
  // Of step 100, whose first shard is there.
  Result<std::unique_ptr<ObjectUpload>> BeginSecondShard() {
    const ShardName first{std::string(16, 'a'), 0, 2}, second{std::string(16, 'a'), 1, 2};
    KEEL_TRY(bucket_.Replace("run/step-000000100/" + ShardFileName(first), "first"));
    return bucket_.Upload("run/step-000000100/" + ShardFileName(second), 10);
  }
  std::vector<std::string> Keys() {
    const ObjectListing listing = *bucket_.List("", Objects::Depth::kAll);
    std::vector<std::string> keys;
    for (const ObjectInfo& one : listing.objects) keys.push_back(one.key);
    return keys;
  }
  void ExpectWhole(uint64_t step) {
    ASSERT_OK_AND_ASSIGN(const auto checkpoint,
                         OpenCheckpoint(files_, "s3://bucket/run@" + std::to_string(step)));
    ASSERT_OK_AND_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {}));
    EXPECT_TRUE(damages.empty());
    TestState loaded = state_.Blank();
    ASSERT_OK(Restore(*checkpoint, loaded.Targets(), {}));
    EXPECT_EQ(loaded.bytes, state_.bytes);
  }
  std::string ManifestOf(uint64_t step) {
    return *ReadWhole(files_, "s3://bucket/run/" + StepDirName(step) + "/manifest.json", 1 << 24);
  }
  void DamageStep100AndPutItAside() {
    ASSERT_OK(SaveStep(100, 1));
    std::string manifest = ManifestOf(100);
    manifest[manifest.size() / 2] ^= 1;
    ASSERT_OK(bucket_.Replace("run/step-000000100/manifest.json", manifest));
    Random random(1);
    ASSERT_OK_AND_ASSIGN(const StepEntry entry,
                         LookAtStep(files_, "s3://bucket/run/step-000000100"));
    ASSERT_OK(PutAside(files_, random, "s3://bucket/run", entry));
    EXPECT_EQ(PutAside(files_, random, "s3://bucket/run", entry).error().code, Code::kExists);
  }

  InterposedObjects bucket_;
  ObjectFiles files_{bucket_};
  TestState state_ = TestState::Make(3, 100'000);
};

TEST_F(SavedInABucket, TheBytesAreThoseOfADirectory) {
  ASSERT_OK_AND_ASSIGN(const CommitReport report, SaveStep(100, 1));
  EXPECT_EQ(report.step_dir, "s3://bucket/run/step-000000100");
  MemoryFiles disk;
  MemorySource source(state_.Spans());
  ASSERT_OK(SaveCheckpoint(disk, PlanOf(state_, "/c", 100, 1, 4096), source, {}, 0));
  MemoryObjects copied;
  CopyIntoBucket(disk, "/c", copied, "run");
  ASSERT_OK_AND_ASSIGN(const ObjectListing ours, bucket_.List("", Objects::Depth::kAll));
  ASSERT_OK_AND_ASSIGN(const ObjectListing theirs, copied.List("", Objects::Depth::kAll));
  ASSERT_EQ(ours.objects.size(), theirs.objects.size());
  for (size_t i = 0; i < ours.objects.size(); ++i) {
    EXPECT_EQ(ours.objects[i].key, theirs.objects[i].key);
    const std::string path = "s3://bucket/" + ours.objects[i].key;
    ObjectFiles their_files(copied);
    EXPECT_EQ(*ReadWhole(files_, path, 1 << 24), *ReadWhole(their_files, path, 1 << 24)) << path;
  }
  ExpectWhole(100);
}

// Of several shards each may come last, and without the manifest there is no checkpoint.
TEST_F(SavedInABucket, ItIsThereOnceItsManifestIs) {
  std::vector<std::unique_ptr<Save>> saves;
  for (uint32_t part = 0; part < 3; ++part) {
    SavePlan plan = PlanOf(state_, "s3://bucket/run", 100, 1, 4096);
    plan.part = part;
    plan.parts = 3;
    ASSERT_OK_AND_ASSIGN(auto save, Save::Begin(files_, plan));
    MemorySource source(state_.Spans());
    ASSERT_OK(save->WriteShard(source, {}));
    saves.push_back(std::move(save));
    EXPECT_EQ(NewestComplete(files_, "s3://bucket/run").error().code, Code::kNotFound);
  }
  ASSERT_OK(saves[0]->Commit(0));
  ExpectWhole(100);
}

TEST_F(SavedInABucket, OfTwoSaversOfAStepOneCommits) {
  SavePlan plan = PlanOf(state_, "s3://bucket/run", 100, 1, 4096);
  SavePlan other = PlanOf(state_, "s3://bucket/run", 100, 2, 4096);
  ASSERT_OK_AND_ASSIGN(const auto a, Save::Begin(files_, plan));
  ASSERT_OK_AND_ASSIGN(const auto b, Save::Begin(files_, other));
  MemorySource source(state_.Spans());
  ASSERT_OK(a->WriteShard(source, {}));
  ASSERT_OK(b->WriteShard(source, {}));
  ASSERT_OK(a->Commit(0));
  const std::string committed = ManifestOf(100);
  EXPECT_EQ(b->Commit(0).error().code, Code::kExists);
  EXPECT_EQ(Save::Begin(files_, other).error().code, Code::kExists);
  b->Abandon();
  EXPECT_EQ(ManifestOf(100), committed);
  ExpectWhole(100);
}

TEST_F(SavedInABucket, NothingTakesADamagedManifestsPlace) {
  ASSERT_OK(bucket_.Replace("run/step-000000100/manifest.json", "garbage"));
  const auto saved = SaveStep(100, 1);
  EXPECT_EQ(saved.error().code, Code::kExists);
  EXPECT_EQ(ManifestOf(100), "garbage");
  Random random(1);
  ASSERT_OK_AND_ASSIGN(const StepEntry entry,
                       LookAtStep(files_, "s3://bucket/run/step-000000100"));
  ASSERT_OK(PutAside(files_, random, "s3://bucket/run", entry));
  ASSERT_OK(SaveStep(100, 2));
  ExpectWhole(100);
}

TEST_F(SavedInABucket, OneThatIsCancelledLeavesNothing) {
  SavePlan plan = PlanOf(state_, "s3://bucket/run", 100, 1, 4096);
  ASSERT_OK_AND_ASSIGN(const auto save, Save::Begin(files_, plan));
  MemorySource source(state_.Spans());
  Progress progress;
  progress.cancel = true;
  EXPECT_EQ(save->WriteShard(source, {.progress = &progress}).error().code, Code::kCancelled);
  EXPECT_TRUE(Keys().empty());
  EXPECT_TRUE(bucket_.Unfinished("")->empty());
}

TEST_F(SavedInABucket, RetentionKeepsTheNewest) {
  for (const uint64_t step : {100, 200, 300, 400}) ASSERT_OK(SaveStep(step, step));
  ASSERT_OK(Pin(files_, "s3://bucket/run/step-000000100"));
  ASSERT_OK_AND_ASSIGN(const RetentionReport report,
                       ApplyRetention(files_, "s3://bucket/run", {.keep_last = 2}));
  EXPECT_GT(report.bytes_freed, 0u);
  ASSERT_OK_AND_ASSIGN(const auto left, ListSteps(files_, "s3://bucket/run"));
  ASSERT_EQ(left.size(), 3u);
  EXPECT_EQ(left[0].step, 100u);
  EXPECT_TRUE(left[0].pinned);
  EXPECT_EQ(left[1].step, 300u);
  EXPECT_EQ(left[2].step, 400u);
  ASSERT_OK(Unpin(files_, "s3://bucket/run/step-000000100"));
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  EXPECT_EQ(Keys().size(), 2u);
  ExpectWhole(400);
}

// There are no locks that tell of a save that goes on, so its age has to.
TEST_F(SavedInABucket, WhatIsYoungMayBeOfASaveThatGoesOn) {
  SavePlan plan = PlanOf(state_, "s3://bucket/run", 100, 1, 4096);
  ASSERT_OK_AND_ASSIGN(const auto save, Save::Begin(files_, plan));
  MemorySource source(state_.Spans());
  ASSERT_OK(save->WriteShard(source, {}));
  ASSERT_OK_AND_ASSIGN(const auto upload, bucket_.Upload(
      "run/step-000000150/" + ShardFileName({std::string(16, 'a'), 0, 1}), 10));
  ASSERT_OK(SaveStep(200, 2));
  RetentionPolicy all{.keep_last = 1, .partial = RetentionPolicy::Partial::kRemoveAll};
  ASSERT_OK_AND_ASSIGN(const RetentionReport young,
                       ApplyRetention(files_, "s3://bucket/run", all));
  EXPECT_EQ(young.verdicts[0].reason, "being written");
  EXPECT_EQ(bucket_.Unfinished("")->size(), 1u);
  EXPECT_EQ(Keys().size(), 3u);
  bucket_.Pass(kBucketQuiet);
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", all));
  EXPECT_EQ(Keys().size(), 2u);
  EXPECT_TRUE(bucket_.Unfinished("")->empty());
  EXPECT_FALSE(save->Commit(0).ok()) << "its shard is gone";
  ExpectWhole(200);
}

constexpr Duration kMostOfQuiet = kBucketQuiet * 2 / 3;

// A large shard over a slow link takes longer than that.
TEST_F(SavedInABucket, AnUploadThatGoesOnIsNotGivenUpHoweverLongItTakes) {
  ASSERT_OK(SaveStep(100, 1));
  const std::string key = "run/step-000000200/" + ShardFileName({std::string(16, 'a'), 0, 1});
  ASSERT_OK_AND_ASSIGN(const auto upload, bucket_.Upload(key, 10));
  for (int part = 0; part < 4; ++part) {
    bucket_.Pass(kMostOfQuiet);
    ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
    ASSERT_OK(upload->Append(BytesOf("x")));
  }
  ASSERT_OK(upload->Finish());
  EXPECT_EQ(bucket_.Look(key)->bytes, 4u);
}

// Of two writers, or of a copy, one shard may be there long before the next one is.
TEST_F(SavedInABucket, ShardsStayAsLongAsAnotherOneOfTheirStepIsUploaded) {
  ASSERT_OK(SaveStep(200, 2));
  ASSERT_OK_AND_ASSIGN(const auto upload, BeginSecondShard());
  bucket_.Pass(kMostOfQuiet);
  ASSERT_OK(upload->Append(BytesOf("x")));
  bucket_.Pass(kMostOfQuiet);
  const RetentionPolicy all{.keep_last = 1, .partial = RetentionPolicy::Partial::kRemoveAll};
  ASSERT_OK_AND_ASSIGN(const RetentionReport report,
                       ApplyRetention(files_, "s3://bucket/run", all));
  EXPECT_EQ(report.verdicts[0].reason, "being written");
  EXPECT_EQ(Keys().size(), 3u);
  ASSERT_OK_AND_ASSIGN(const StepEntry kept, LookAtStep(files_, "s3://bucket/run/step-000000100"));
  EXPECT_EQ(kept.reason, "no manifest: a save is in progress");
  bucket_.Pass(kBucketQuiet);
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", all));
  EXPECT_EQ(Keys().size(), 2u);
  EXPECT_TRUE(bucket_.Unfinished("")->empty());
}

// Then nothing tells a dead one from one that goes on.
TEST_F(SavedInABucket, AnUploadWhosePartsCannotBeListedStays) {
  ASSERT_OK(SaveStep(200, 2));
  const ShardName shard{std::string(16, 'a'), 0, 1};
  ASSERT_OK_AND_ASSIGN(auto upload,
                       bucket_.Upload("run/step-000000100/" + ShardFileName(shard), 10));
  bucket_.Pass(kBucketQuiet);
  bucket_.RefuseToTellOfParts(Code::kInvalid);
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  EXPECT_EQ(bucket_.Unfinished("")->size(), 1u);
  bucket_.RefuseToTellOfParts(Code::kTimeout);
  EXPECT_EQ(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}).error().code,
            Code::kTimeout);
  bucket_.RefuseToTellOfParts(Code::kNotFound);   // it has ended meanwhile
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  ASSERT_OK(upload->Finish());
}

// It has ended between the lists that tell of shards and of uploads: one of them has to show it.
TEST_F(SavedInABucket, AnUploadThatEndsWhileTheStepIsJudgedIsSeen) {
  ASSERT_OK(SaveStep(200, 2));
  ASSERT_OK_AND_ASSIGN(const auto upload, BeginSecondShard());
  bucket_.Pass(kBucketQuiet);
  ASSERT_OK(upload->Append(BytesOf("x")));
  bucket_.BeforeUnfinished([&] { EXPECT_OK(upload->Finish()); });
  EXPECT_TRUE(LookAtStep(files_, "s3://bucket/run/step-000000100")->in_progress);
}

// What another attempt left in a complete step.
TEST_F(SavedInABucket, OldLeftoversGo) {
  SavePlan plan = PlanOf(state_, "s3://bucket/run", 100, 1, 4096);
  ASSERT_OK_AND_ASSIGN(const auto dead, Save::Begin(files_, plan));
  MemorySource source(state_.Spans());
  ASSERT_OK(dead->WriteShard(source, {}));
  ASSERT_OK(SaveStep(100, 2));
  bucket_.Pass(kBucketQuiet);
  ASSERT_OK_AND_ASSIGN(const RetentionReport report,
                       ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  EXPECT_GT(report.bytes_freed, 0u);
  EXPECT_EQ(Keys().size(), 2u);
  ExpectWhole(100);
}

// One list, and each manifest: how long it is, and what it says.
TEST_F(SavedInABucket, AListAsksTheStoreLittle) {
  for (const uint64_t step : {100, 200, 300}) ASSERT_OK(SaveStep(step, step));
  const size_t before = bucket_.requests().size();
  ASSERT_OK(ListSteps(files_, "s3://bucket/run"));
  EXPECT_LE(bucket_.requests().size() - before, 1u + 3 * 2);
}

TEST_F(SavedInABucket, WhatWasPutAsideIsKeptForRepair) {
  ASSERT_NO_FATAL_FAILURE(DamageStep100AndPutItAside());
  ASSERT_OK(SaveStep(200, 2));
  bucket_.Pass(kBucketQuiet);
  ASSERT_OK_AND_ASSIGN(const RetentionReport report,
                       ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  EXPECT_EQ(report.verdicts[0].reason, "damaged: kept for repair");
  EXPECT_EQ(Keys().size(), 4u);
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1, .remove_damaged = true}));
  EXPECT_EQ(Keys().size(), 2u);
}

// A job goes on from an earlier one, and comes to that step again.
TEST_F(SavedInABucket, WhatWasPutAsideStaysWhereItsStepIsSavedAgain) {
  ASSERT_NO_FATAL_FAILURE(DamageStep100AndPutItAside());
  ASSERT_OK(SaveStep(100, 2));
  const size_t all = Keys().size();
  bucket_.Pass(kBucketQuiet);
  ASSERT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  EXPECT_EQ(Keys().size(), all);
}

TEST_F(SavedInABucket, ABucketItselfMayBeTheDirectory) {
  MemorySource source(state_.Spans());
  for (const char* root : {"s3://bucket", "s3://bucket/a//b/"}) {
    ASSERT_OK(SaveCheckpoint(files_, PlanOf(state_, root, 100, 1, 4096), source, {}, 0));
    const std::string at = std::string(root) + "@100";
    ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(files_, at));
    EXPECT_EQ(NewestComplete(files_, root)->step, 100u);
    ASSERT_OK(ApplyRetention(files_, root, {.keep_last = 1}));
  }
}

// One that stands still for an hour looks like one that has died.
TEST_F(SavedInABucket, ACopyWhoseShardsWereRemovedMeanwhileIsNotCalledOne) {
  std::vector<std::unique_ptr<Save>> saves;
  MemorySource source(state_.Spans());
  for (uint32_t part = 0; part < 2; ++part) {
    SavePlan plan = PlanOf(state_, "s3://bucket/from", 100, 1, 4096);
    plan.part = part;
    plan.parts = 2;
    ASSERT_OK_AND_ASSIGN(auto save, Save::Begin(files_, plan));
    ASSERT_OK(save->WriteShard(source, {}));
    saves.push_back(std::move(save));
  }
  ASSERT_OK(saves[0]->Commit(0));
  ASSERT_OK(SaveStep(200, 2));
  ASSERT_OK_AND_ASSIGN(const auto from, OpenCheckpoint(files_, "s3://bucket/from"));
  bucket_.BeforeUpload(from->manifest().shards[1].file, [&] {
    bucket_.Pass(kBucketQuiet);
    EXPECT_OK(ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1}));
  });
  const auto copied = CopyCheckpoint(files_, *from, "s3://bucket/run", nullptr);
  ASSERT_EQ(LookAtStep(files_, "s3://bucket/run/step-000000100")->state, StepState::kDamaged);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code, Code::kCorrupt);
  EXPECT_NE(copied.error().message.find("removed as old"), std::string::npos);
}

// --- Copies ---

class Copies : public testing::TestWithParam<bool> {
 protected:
  Files& Place() { return GetParam() ? static_cast<Files&>(in_bucket_) : disk_; }
  std::string Root(const std::string& name) const {
    return (GetParam() ? "s3://bucket/" : "/") + name;
  }
  Result<std::unique_ptr<Checkpoint>> Make() {
    std::vector<std::unique_ptr<Save>> saves;
    MemorySource source(state_.Spans());
    for (uint32_t part = 0; part < 3; ++part) {
      SavePlan plan = PlanOf(state_, Root("from"), 100, 1, 4096);
      plan.part = part;
      plan.parts = 3;
      KEEL_TRY_ASSIGN(auto save, Save::Begin(Place(), plan));
      KEEL_TRY(save->WriteShard(source, {}));
      saves.push_back(std::move(save));
    }
    KEEL_TRY(saves[0]->Commit(0));
    return OpenCheckpoint(Place(), Root("from"));
  }
  void ExpectWhole(const std::string& root) {
    ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(Place(), root));
    ASSERT_OK_AND_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {}));
    EXPECT_TRUE(damages.empty());
  }

  MemoryFiles disk_;
  MemoryObjects bucket_;
  ObjectFiles in_bucket_{bucket_};
  TestState state_ = TestState::Make(3, 100'000);
};

TEST_P(Copies, AreWholeAndASecondOneHarmsNothing) {
  ASSERT_OK_AND_ASSIGN(const auto from, Make());
  ASSERT_OK(CopyCheckpoint(Place(), *from, Root("to"), nullptr));
  ExpectWhole(Root("to"));
  EXPECT_EQ(CopyCheckpoint(Place(), *from, Root("to"), nullptr).error().code, Code::kExists);
  EXPECT_EQ(CopyCheckpoint(Place(), *from, Root("from"), nullptr).error().code, Code::kExists);
  ExpectWhole(Root("to"));
  ExpectWhole(Root("from"));
}

TEST_P(Copies, OneThatIsCutShortIsMadeByTheNext) {
  ASSERT_OK_AND_ASSIGN(const auto from, Make());
  Progress progress;
  progress.cancel = true;
  EXPECT_EQ(CopyCheckpoint(Place(), *from, Root("to"), &progress).error().code,
            Code::kCancelled);
  EXPECT_EQ(NewestComplete(Place(), Root("to")).error().code, Code::kNotFound);
  // What one that was killed has left.
  const std::string shard = from->manifest().shards[1].file;
  if (!GetParam()) {
    ASSERT_OK(MakeDirs(disk_, "/to/step-000000100"));
    ASSERT_OK(WriteDurably(disk_, "/to/step-000000100/" + shard, "half"));
  }
  ASSERT_OK(CopyCheckpoint(Place(), *from, Root("to"), nullptr));
  ExpectWhole(Root("to"));
}

TEST_P(Copies, DamageIsNotCopied) {
  ASSERT_OK_AND_ASSIGN(const auto from, Make());
  const std::string path = from->dir() + "/" + from->manifest().shards[2].file;
  std::string bytes = *ReadWhole(Place(), path, 1 << 24);
  bytes[bytes.size() / 3] ^= 4;
  ASSERT_OK(WriteDurably(Place(), path, bytes));
  ASSERT_OK_AND_ASSIGN(const auto damaged, OpenCheckpoint(Place(), Root("from")));
  const auto copied = CopyCheckpoint(Place(), *damaged, Root("to"), nullptr);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code, Code::kCorrupt);
  EXPECT_EQ(NewestComplete(Place(), Root("to")).error().code, Code::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(In, Copies, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Bucket" : "Directory");
});

// On a disk, where it can be seen.
TEST(CopiesAtOnce, TheSecondSaysThatAnotherOneIsAtIt) {
  MemoryFiles disk;
  const TestState state = TestState::Make(3, 10'000);
  MemorySource source(state.Spans());
  ASSERT_OK(SaveCheckpoint(disk, PlanOf(state, "/from", 100, 1, 4096), source, {}, 0));
  ASSERT_OK_AND_ASSIGN(const auto from, OpenCheckpoint(disk, "/from"));
  {
    const ShardName shard{from->manifest().attempt, 0, 1};
    ASSERT_OK_AND_ASSIGN(const auto first,
                         StepPlace::At(disk, {"/to", "/to/step-000000100", shard}));
    ASSERT_OK(first->Prepare());
    ASSERT_OK(first->MakeShard(1, /*direct=*/false, nullptr));
    const auto second = CopyCheckpoint(disk, *from, "/to", nullptr);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Code::kExists);
    EXPECT_NE(second.error().message.find("another process is copying it"), std::string::npos)
        << second.error().message;
    EXPECT_TRUE(*Exists(disk, "/to/step-000000100/" + ShardFileName(shard))) << "it is not its own";
  }
  EXPECT_OK(CopyCheckpoint(disk, *from, "/to", nullptr));   // the first one has died
}

}  // namespace
}  // namespace keel
