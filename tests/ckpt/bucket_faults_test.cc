// A save, its commit and retention in a bucket, with each request going wrong in each way: whatever
// happens, no checkpoint is lost, and none is said to be there that is not.
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/memory_objects.h"
#include "base/object_files.h"
#include "base/upload_age.h"
#include "ckpt/catalog.h"
#include "ckpt/retention.h"
#include "ckpt/verify.h"
#include "tests/ckpt/faulty_objects.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

using Wrong = FaultyObjects::Fault;

constexpr const char* kRoot = "s3://bucket/run";
const std::string kManifestKey = "run/step-000000200/manifest.json";

std::string NameOf(Wrong fault) {
  switch (fault) {
    case Wrong::kFails: return "Fails";
    case Wrong::kLosesAnswer: return "LosesAnswer";
    case Wrong::kDies: return "Dies";
    case Wrong::kDiesAfter: return "DiesAfter";
  }
  return "";
}

// Tells of whatever would change what is committed.
class GuardedObjects : public MemoryObjects {
 public:
  Status PutIfAbsent(const std::string& key, std::string_view bytes) override {
    const bool was_there = Look(key).ok();
    const Status put = MemoryObjects::PutIfAbsent(key, bytes);
    EXPECT_FALSE(put.ok() && was_there && key.ends_with("manifest.json")) << key;
    return put;
  }
  Status Replace(const std::string& key, std::string_view bytes) override {
    ADD_FAILURE() << key << " is replaced";
    return MemoryObjects::Replace(key, bytes);
  }
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key,
                                               uint64_t bytes_max) override {
    EXPECT_FALSE(Look(key).ok()) << key << " is written again";
    return MemoryObjects::Upload(key, bytes_max);
  }
};

class BucketFaults : public testing::TestWithParam<Wrong> {
 protected:
  static SavePlan Plan(const TestState& state, uint64_t step, uint32_t part, uint32_t parts) {
    SavePlan plan = PlanOf(state, kRoot, step, step, 4096);
    plan.part = part;
    plan.parts = parts;
    return plan;
  }
  // By two writers; then retention, as a job does it.
  static Status SaveBothParts(Files& files, const TestState& state, uint64_t step) {
    KEEL_TRY_ASSIGN(const auto first, Save::Begin(files, Plan(state, step, 0, 2)));
    KEEL_TRY_ASSIGN(const auto second, Save::Begin(files, Plan(state, step, 1, 2)));
    MemorySource source(state.Spans());
    const auto a = first->WriteShard(source, {}), b = second->WriteShard(source, {});
    Status committed = !a.ok() ? Status(a.error()) : !b.ok() ? Status(b.error()) : Ok();
    if (committed.ok()) {
      const auto report = first->Commit(0);
      if (!report.ok()) committed = report.error();
    }
    if (committed.ok()) {
      (void)ApplyRetention(files, kRoot, {.keep_last = 1});
    } else {
      first->Abandon();
      second->Abandon();
    }
    return committed;
  }
  static void ExpectWhole(Files& files, uint64_t step, TestState& state) {
    ASSERT_OK_AND_ASSIGN(const auto checkpoint,
                         OpenCheckpoint(files, std::string(kRoot) + "@" + std::to_string(step)));
    TestState loaded = state.Blank();
    ASSERT_OK(Restore(*checkpoint, loaded.Targets(), {}));
    EXPECT_EQ(loaded.bytes, state.bytes);
  }
};

TEST_P(BucketFaults, EachRequest) {
  TestState older = TestState::Make(1, 3000), newer = TestState::Make(2, 3000);
  int points = 0;
  for (int at = 1;; at += kPointStride) {
    SCOPED_TRACE("request " + std::to_string(at));
    GuardedObjects bucket;
    ObjectFiles clean(bucket);
    ASSERT_OK(SaveBothParts(clean, older, 100));
    FaultyObjects faulty(bucket, GetParam(), at);
    ObjectFiles files(faulty);
    const Status saved = SaveBothParts(files, newer, 200);
    if (!faulty.has_struck()) {
      ASSERT_OK(saved);
      break;
    }
    ++points;
    const bool is_there = bucket.Look(kManifestKey).ok();
    EXPECT_TRUE(is_there || !saved.ok());
    if (is_there) {
      ExpectWhole(clean, 200, newer);
    } else {
      ExpectWhole(clean, 100, older);
    }
    ASSERT_OK_AND_ASSIGN(const StepEntry newest, NewestComplete(clean, kRoot));
    EXPECT_EQ(newest.step, is_there ? 200u : 100u);
    // The next job saves the next step, and what is left over goes in time.
    ASSERT_OK(SaveBothParts(clean, newer, 300));
    bucket.Pass(kBucketQuiet);
    ASSERT_OK(ApplyRetention(clean, kRoot, {.keep_last = 1}));
    EXPECT_EQ(bucket.List("", Objects::Depth::kAll)->objects.size(), 3u);
    EXPECT_TRUE(bucket.Unfinished("")->empty());
    ExpectWhole(clean, 300, newer);
  }
  EXPECT_GE(points, 25 / kPointStride);
}

INSTANTIATE_TEST_SUITE_P(All, BucketFaults,
                         testing::Values(Wrong::kFails, Wrong::kLosesAnswer, Wrong::kDies,
                                         Wrong::kDiesAfter),
                         [](const auto& info) { return NameOf(info.param); });

// Its put had no answer, and is carried out after the group has given up.
TEST(LateAnswers, AManifestThatAppearsLateNamesWhatIsThere) {
  TestState state = TestState::Make(2, 3000);
  MemoryObjects bucket;
  ObjectFiles files(bucket);
  SavePlan plan = PlanOf(state, kRoot, 200, 1, 4096);
  ASSERT_OK_AND_ASSIGN(const auto save, Save::Begin(files, plan));
  MemorySource source(state.Spans());
  ASSERT_OK(save->WriteShard(source, {}));
  std::string manifest;
  {
    MemoryObjects other;
    ObjectFiles there(other);
    ASSERT_OK(SaveCheckpoint(there, plan, source, {}, 0));
    manifest = *ReadWhole(there, std::string("s3://bucket/") + kManifestKey, 1 << 24);
  }
  save->Abandon();
  ASSERT_OK(bucket.PutIfAbsent(kManifestKey, manifest));
  ASSERT_OK_AND_ASSIGN(const StepEntry newest, NewestComplete(files, kRoot));
  EXPECT_EQ(newest.step, 200u);
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(files, kRoot));
  ASSERT_OK_AND_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {}));
  EXPECT_TRUE(damages.empty());
}

}  // namespace
}  // namespace keel
