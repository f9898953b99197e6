// Checkpoints that were copied into a bucket are found, verified and loaded there, as in a
// directory.
#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "base/memory_objects.h"
#include "base/object_files.h"
#include "ckpt/catalog.h"
#include "ckpt/retention.h"
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

// Nothing is removed, and nothing is said to be.
TEST_F(InABucket, RetentionIsRefused) {
  const auto report = ApplyRetention(files_, "s3://bucket/run", {.keep_last = 1});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kInvalid);
  EXPECT_EQ(ListSteps(files_, "s3://bucket/run")->size(), 2u);
}

}  // namespace
}  // namespace keel
