// A store that is away says nothing about its checkpoints: what reads them ends soon with its
// error, and calls nothing damaged or lost. What it shows, and what a disk does not return, is
// damage.
#include "ckpt/away.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/object_files.h"
#include "ckpt/catalog.h"
#include "ckpt/salvage.h"
#include "ckpt/verify.h"
#include "tests/ckpt/faulty_objects.h"
#include "tests/ckpt/leaving_objects.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

constexpr const char* kHome = "s3://bucket/run";
const std::string kStepHome = "s3://bucket/run/step-000000100";
const std::string kStepPrefix = "run/step-000000100/";

// In two shards, of some fifty frames each.
void SaveThere(Objects& bucket, const TestState& state) {
  ObjectFiles files(bucket);
  MemorySource source(state.Spans());
  SavePlan plan = PlanOf(state, kHome, 100, 1, 4096);
  plan.parts = 2;
  for (plan.part = 0; plan.part < plan.parts; ++plan.part) {
    ASSERT_OK_AND_ASSIGN(const auto save, Save::Begin(files, plan));
    ASSERT_OK(save->WriteShard(source, {}));
    if (plan.part == 1) {
      ASSERT_OK(save->Commit(0));
    }
  }
}

class AwayStore : public testing::TestWithParam<Code> {
 protected:
  void SetUp() override { SaveThere(bucket_, state_); }

  TestState state_ = TestState::Make(3, 100'000);
  LeavingObjects bucket_;
  ObjectFiles files_{bucket_};
};

TEST_P(AwayStore, AVerificationEndsAtOnceWithTheError) {
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(files_, kHome));
  constexpr int kThreads = 3;
  for (const Depth depth : {Depth::kStored, Depth::kContent}) {
    Progress progress;
    bucket_.LeaveAfter(2, GetParam());
    const auto damages =
        VerifyFrames(*checkpoint, {.threads = kThreads, .progress = &progress, .depth = depth});
    ASSERT_FALSE(damages.ok()) << damages->size() << " frames are called damaged";
    EXPECT_EQ(damages.error().code, GetParam());
    EXPECT_NE(damages.error().message.find("the store is away"), std::string::npos);
    EXPECT_LE(bucket_.failed_reads(), kThreads) << "one that each was at, and no other";
    EXPECT_LE(progress.bytes_done, uint64_t{2} * kSlotFrames * 4096) << "nothing more came";
  }
}

TEST_P(AwayStore, ARestoreEndsAtOnceWithTheError) {
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(files_, kHome));
  TestState loaded = state_.Blank();
  const size_t before = bucket_.requests().size();
  ASSERT_OK(Restore(*checkpoint, loaded.Targets(), {.into = Into::kFresh, .threads = 1}));
  const auto reads = static_cast<int>(bucket_.requests().size() - before);
  bucket_.LeaveAfter(reads + 1, GetParam());   // within the second pass
  const auto restored =
      Restore(*checkpoint, loaded.Targets(), {.into = Into::kLive, .threads = 1});
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, GetParam());
  EXPECT_EQ(bucket_.failed_reads(), 1);
}

// In place of one that is refused each of the others, too, would wait as long.
TEST_P(AwayStore, OfManyShardsOneIsAsked) {
  bucket_.LeaveAfter(2, GetParam());   // it returns the manifest
  EXPECT_EQ(Checkpoint::Open(files_, kStepHome).error().code, GetParam());
  EXPECT_EQ(bucket_.failed_reads(), 1);
}

TEST_P(AwayStore, ARepairRefuses) {
  ASSERT_OK_AND_ASSIGN(const auto whole, Salvage::Survey(files_, kStepHome, "", {.threads = 1}));
  EXPECT_TRUE(whole->needs_no_repair());
  Progress progress;
  bucket_.LeaveAfter(13, GetParam());   // within the frames
  const auto survey =
      Salvage::Survey(files_, kStepHome, "", {.threads = 2, .progress = &progress});
  ASSERT_FALSE(survey.ok()) << "it drops what it was not given";
  EXPECT_EQ(survey.error().code, GetParam());
  EXPECT_LE(bucket_.failed_reads(), 2);
  EXPECT_LE(progress.bytes_done, uint64_t{10} * 4096);
}

INSTANTIATE_TEST_SUITE_P(Of, AwayStore,
                         testing::Values(Code::kPeerLost, Code::kTimeout, Code::kInvalid,
                                         Code::kIo),
                         [](const auto& info) {
                           return std::to_string(static_cast<int>(info.param));
                         });

// --- Whichever request is the first that has no answer ---

using LookThrough = std::function<Status(Files&)>;

void ExpectRefusedAtEachRequest(Objects& bucket, const LookThrough& look, int requests_least) {
  int at = 1;
  for (;; ++at) {
    SCOPED_TRACE("request " + std::to_string(at));
    FaultyObjects away(bucket, FaultyObjects::Fault::kDies, at);
    ObjectFiles files(away);
    const Status looked = look(files);
    if (!away.has_struck()) break;
    ASSERT_FALSE(looked.ok()) << "it judges by what did not come";
    EXPECT_EQ(looked.error().code, Code::kPeerLost) << looked.error().message;
  }
  EXPECT_GT(at, requests_least);
}

class AwayAtARequest : public testing::Test {
 protected:
  void SetUp() override { SaveThere(bucket_, state_); }
  std::string ShardKey(uint32_t part) {
    ObjectFiles files(bucket_);
    return kStepPrefix + ReadManifest(files, kStepHome)->shards.at(part).file;
  }
  void Change(const std::string& key, size_t from_end) {
    ObjectFiles files(bucket_);
    std::string bytes = *ReadWhole(files, "s3://bucket/" + key, 1 << 24);
    bytes.at(bytes.size() - from_end) ^= 1;
    ASSERT_OK(bucket_.Replace(key, bytes));
  }
  static Status Repair(Files& files) {
    KEEL_TRY(Salvage::Survey(files, kStepHome, "", {.threads = 1}));
    return Ok();
  }

  TestState state_ = TestState::Make(3, 100'000);
  MemoryObjects bucket_;
};

TEST_F(AwayAtARequest, NothingIsVerified) {
  ExpectRefusedAtEachRequest(bucket_, [](Files& files) -> Status {
    KEEL_TRY_ASSIGN(const auto checkpoint, Checkpoint::Open(files, kStepHome));
    KEEL_TRY_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {.threads = 1}));
    EXPECT_TRUE(damages.empty());
    return Ok();
  }, 15);
}

TEST_F(AwayAtARequest, NothingIsRepaired) { ExpectRefusedAtEachRequest(bucket_, Repair, 50); }

TEST_F(AwayAtARequest, NothingIsRepairedWhereFramesAreHuntedFor) {
  Change(ShardKey(0), 1);
  ExpectRefusedAtEachRequest(bucket_, Repair, 50);
}

TEST_F(AwayAtARequest, NothingIsRepairedWithoutAManifest) {
  Change(ShardKey(0), 1);
  ASSERT_OK(bucket_.Remove({kStepPrefix + "manifest.json"}));
  ExpectRefusedAtEachRequest(bucket_, Repair, 50);
}

// --- What is damage all the same ---

TEST_F(AwayAtARequest, WhatTheStoreShowsIsDamage) {
  ObjectFiles files(bucket_);
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files, kStepHome));
  Change(ShardKey(0), checkpoint->shards()[0]->bytes() - kShardHeaderBytes - 100);
  ASSERT_OK_AND_ASSIGN(const auto changed, VerifyFrames(*checkpoint, {}));
  EXPECT_EQ(changed.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const auto left, Salvage::Survey(files, kStepHome, "", {}));
  ASSERT_TRUE(left->decision().chosen.has_value());
  EXPECT_FALSE(left->fates()[0].is_whole());
  EXPECT_GT(left->fates()[0].whole_bytes(), 0u);
  const std::string gone = ShardKey(1);
  ASSERT_OK(bucket_.Remove({gone}));
  ASSERT_OK_AND_ASSIGN(const auto missing, VerifyFrames(*checkpoint, {}));
  EXPECT_EQ(missing.size(), 1 + checkpoint->shards()[1]->index().size());
  ASSERT_OK_AND_ASSIGN(const auto nothing, Salvage::Survey(files, kStepHome, "", {}));
  EXPECT_FALSE(nothing->decision().chosen.has_value()) << "the one large tensor lies in both";
}

TEST(BadSector, OfADiskIsDamageAndTheRestIsRead) {
  const TestState state = TestState::Make(3, 100'000);
  MemoryFiles disk;
  MemorySource source(state.Spans());
  ASSERT_OK(SaveCheckpoint(disk, PlanOf(state, "/c", 100, 1, 4096), source, {}, 0));
  FaultyFiles bad(disk);
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, OpenCheckpoint(bad, "/c"));
  bad.Plan({.at_call = 3, .op = FileOp::kReadAt});   // the rest of a run is read by itself
  ASSERT_OK_AND_ASSIGN(const auto read_again, VerifyFrames(*checkpoint, {.threads = 1}));
  EXPECT_TRUE(read_again.empty());
  bad.Plan({.at_call = 3, .op = FileOp::kReadAt, .lasting = true});
  ASSERT_OK_AND_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {.threads = 1}));
  EXPECT_EQ(damages.size(), checkpoint->layout().frame_count() - 2 * kSlotFrames);
  EXPECT_EQ(damages[0].error.code, Code::kIo);
}

// --- What a disk refuses to open ---

TEST(RefusedToOpen, SaysNothingOfTheBytesThatAreThere) {
  const TestState state = TestState::Make(3, 100'000);
  MemoryFiles disk;
  MemorySource source(state.Spans());
  ASSERT_OK(SaveCheckpoint(disk, PlanOf(state, "/c", 100, 1, 4096), source, {}, 0));
  const std::string step = "/c/step-000000100", shard = ReadManifest(disk, step)->shards[0].file;
  const auto survey = [&](const std::string& file, int error_number, int at_call) {
    FaultyFiles faulty(disk);
    faulty.Plan({.at_call = at_call,
                 .op = FileOp::kOpen,
                 .path_part = file,
                 .error_number = error_number,
                 .lasting = true});
    return Salvage::Survey(faulty, step, "", {.threads = 1});
  };
  const auto expect_refused = [&](const std::string& file, int at_call) {
    for (const int why : {EACCES, EMFILE, ENFILE}) {
      const auto refused = survey(file, why, at_call);
      ASSERT_FALSE(refused.ok()) << "it calls lost what it was not given: " << file;
      EXPECT_EQ(refused.error().code, Code::kIo);
      EXPECT_NE(refused.error().message.find(file), std::string::npos);
    }
  };
  for (const std::string& file : {shard, std::string(kManifestName)}) {
    expect_refused(file, 1);
    const auto lost = survey(file, EIO, 1);
    ASSERT_OK(lost);
    EXPECT_FALSE((*lost)->needs_no_repair());
  }
  // Its footer is damaged, and it is opened once more to hunt for frames.
  std::string bytes = *ReadWhole(disk, step + "/" + shard, 1 << 24);
  bytes.back() ^= 1;
  ASSERT_OK(WriteDurably(disk, step + "/" + shard, bytes));
  expect_refused(shard, 2);
}

}  // namespace
}  // namespace keel
