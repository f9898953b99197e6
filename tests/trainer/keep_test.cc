// What one worker saves and begins from, without a group: in a directory in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "ckpt/catalog.h"
#include "ckpt/checkpoint.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/tasks.h"
#include "trainer/checkpointer.h"
#include "trainer/resume.h"
#include "trainer/state_image.h"

namespace keel {
namespace {

using testing::HasSubstr;

const std::string kFingerprint = "threads=1 lanes=2 lane_batch=4 steps=9 seed=3 samples=50";

// The seed decides what is in it.
std::unique_ptr<TrainState> StateOf(const std::string& model, uint64_t weights) {
  torch::manual_seed(weights);
  Task task = MakeTask(model);
  auto optimizer = MakeAdamW(TensorsOf(*task.model).parameters, {});
  KEEL_CHECK(optimizer.ok(), optimizer.error().message);
  TrainProgram program{.model = task.model, .loss = task.loss, .dataset = std::move(task.dataset),
                       .optimizer = std::move(*optimizer)};
  auto state = TrainState::Make({.steps = 9, .seed = 3, .lanes = 2, .lane_batch = 4},
                                std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  (*state)->TakeOwn();
  return std::move(*state);
}

class Keep : public testing::Test {
 protected:
  std::unique_ptr<Checkpointer> SaverOf(TrainState& state) {
    auto saver = Checkpointer::Open(state, {.root = "/ckpts", .fingerprint = kFingerprint}, files_,
                                    RealClock());
    KEEL_CHECK(saver.ok(), saver.error().message);
    return std::move(*saver);
  }
  Result<ResumeOutcome> ResumeInto(TrainState& state, ResumeConfig config = {}) {
    config.root = "/ckpts";
    if (config.fingerprint.empty()) config.fingerprint = kFingerprint;
    return Resume(state, files_, config, [] {});
  }

  MemoryFiles files_;
};

TEST_F(Keep, WhatWasSavedIsRestoredToTheLastBit) {
  for (const char* model : {"mlp", "resnet", "gpt"}) {
    const auto saved = StateOf(model, 1);
    const auto other = StateOf(model, 2);
    ASSERT_NE(saved->registry().StateDigest(), other->registry().StateDigest());
    MemoryFiles files;
    ASSERT_OK_AND_ASSIGN(const auto saver,
                         Checkpointer::Open(*saved, {.root = "/c", .fingerprint = kFingerprint},
                                            files, RealClock()));
    ASSERT_OK(saver->SaveAlone({}));
    ASSERT_OK_AND_ASSIGN(
        const ResumeOutcome outcome,
        Resume(*other, files, {.root = "/c", .fingerprint = kFingerprint}, [] {}));
    EXPECT_TRUE(outcome.resumed);
    EXPECT_EQ(saved->registry().StateDigest(), other->registry().StateDigest()) << model;
  }
}

// A checkpoint holds rows, whatever the memory's order.
TEST_F(Keep, TheOrderOfMemoryIsNotSaved) {
  const at::Tensor rows = torch::arange(24, torch::kFloat).reshape({1, 2, 3, 4});
  const at::Tensor channels_last = rows.contiguous(at::MemoryFormat::ChannelsLast);
  const auto alias = [](size_t) { return HostBytes::Take::kAlias; };
  ASSERT_OK_AND_ASSIGN(const HostBytes bytes, HostBytes::Of({{"x", channels_last}}, alias));
  const auto* const values = reinterpret_cast<const float*>(bytes.spans()[0].data());
  for (int i = 0; i < 24; ++i) EXPECT_EQ(values[i], static_cast<float>(i));

  const at::Tensor target = torch::empty_like(channels_last);
  ASSERT_FALSE(target.is_contiguous());
  ASSERT_OK_AND_ASSIGN(const HostRoom room, HostRoom::For({{"x", target}}));
  std::copy(bytes.spans()[0].begin(), bytes.spans()[0].end(), room.At(0).begin());
  ASSERT_OK(room.Finish());
  EXPECT_TRUE(target.equal(rows));
}

TEST_F(Keep, BesideTrainingTheCopyIsOfTheMomentItBegan) {
  const auto state = StateOf("resnet", 1);
  const Digest before = state->registry().StateDigest();
  const auto saver = SaverOf(*state);
  saver->BeginEpoch({.rank = 0, .world = 1, .prefix = "p", .fingerprint = kFingerprint});
  saver->Act({SaveAction::kBegin, false, "test"});
  // Forward changes buffers at once; parameters wait for the copy.
  for (const NamedTensor& buffer : state->model_tensors().buffers) buffer.tensor.fill_(7);
  saver->AwaitCopy();
  {
    const torch::NoGradGuard guard;
    for (const at::Tensor& parameter : state->parameters()) parameter.zero_();
  }
  while (saver->Vote().state == SaveState::kWriting) std::this_thread::yield();
  ASSERT_EQ(saver->Vote().state, SaveState::kDurable);
  saver->Act({SaveAction::kCommit, false, "test"});
  while (saver->Vote().state == SaveState::kCommitting) std::this_thread::yield();
  const auto other = StateOf("resnet", 2);
  ASSERT_OK(ResumeInto(*other));
  EXPECT_EQ(other->registry().StateDigest(), before);
}

TEST_F(Keep, WhatTheGroupDidNotDecideIsGivenUpAndWantedAgain) {
  const auto state = StateOf("mlp", 1);
  const auto saver = SaverOf(*state);
  saver->BeginEpoch({.rank = 0, .world = 1, .prefix = "p", .fingerprint = kFingerprint});
  EXPECT_FALSE(saver->Vote().wanted);
  saver->Act({SaveAction::kBegin, false, "test"});
  saver->EndEpoch();
  EXPECT_EQ(saver->Vote().state, SaveState::kIdle);
  EXPECT_TRUE(saver->Vote().wanted);
  ASSERT_OK_AND_ASSIGN(const auto steps, ListSteps(files_, "/ckpts"));
  EXPECT_TRUE(steps.empty()) << steps[0].dir << ": " << steps[0].reason;
}

TEST_F(Keep, AShareThatWasCalledDurableIsLeftWhenTheGroupBreaks) {
  const auto state = StateOf("mlp", 1);
  const auto saver = SaverOf(*state);
  saver->BeginEpoch({.rank = 1, .world = 2, .prefix = "p", .fingerprint = kFingerprint});
  saver->Act({SaveAction::kBegin, false, "test"});
  while (saver->Vote().state == SaveState::kWriting) std::this_thread::yield();
  ASSERT_EQ(saver->Vote().state, SaveState::kDurable);
  saver->EndEpoch();
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List("/ckpts/step-000000000"));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_THAT(entries[0].name, HasSubstr("-shard-0001-of-0002.keel"));
}

TEST_F(Keep, ADirectoryHasOneJob) {
  const auto state = StateOf("mlp", 1);
  const auto first = SaverOf(*state);
  const auto second = SaverOf(*state);
  first->BeginEpoch({.rank = 0, .world = 1, .prefix = "p", .fingerprint = ""});
  ASSERT_OK(first->HoldDirectory());
  const Status refused = second->HoldDirectory();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("another job saves in /ckpts"));
  // Somebody else has become the first rank.
  first->BeginEpoch({.rank = 1, .world = 2, .prefix = "q", .fingerprint = ""});
  EXPECT_OK(second->HoldDirectory());
}

TEST_F(Keep, AnotherModelIsRefusedBeforeAnythingChanges) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  const auto other = StateOf("gpt", 1);
  const Digest before = other->registry().StateDigest();
  const auto outcome = ResumeInto(*other);
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr("is not of this job"));
  EXPECT_EQ(other->registry().StateDigest(), before);
}

TEST_F(Keep, ADamagedCheckpointLeavesTheStateAlone) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  ASSERT_OK_AND_ASSIGN(const auto names, files_.List("/ckpts/step-000000000"));
  for (const DirEntry& name : names) {
    if (name.name.find(".keel") == std::string::npos) continue;
    ASSERT_OK_AND_ASSIGN(const auto file,
                         files_.Open("/ckpts/step-000000000/" + name.name, {.write = true}));
    std::byte one{};
    ASSERT_OK(file->ReadAt(1000, {&one, 1}));
    one ^= std::byte{1};
    ASSERT_OK(file->WriteAt(1000, {&one, 1}));
  }
  const auto other = StateOf("mlp", 2);
  const Digest before = other->registry().StateDigest();
  const auto outcome = ResumeInto(*other);
  ASSERT_FALSE(outcome.ok()) << "all there is, is damaged";
  EXPECT_THAT(outcome.error().message, HasSubstr("step-000000000"));
  EXPECT_EQ(other->registry().StateDigest(), before);
}

// The disk refuses once: the older one has to do, but the newest stays what it is.
TEST_F(Keep, ACheckpointThatCannotBeReadIsPassedOverAndLeftInItsPlace) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  ASSERT_OK(state->Apply({0.5f, 0.5f}));
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  for (const FileOp op : {FileOp::kOpen, FileOp::kReadAt}) {
    FaultyFiles refusing(files_);
    refusing.Plan({.op = op, .path_part = "/ckpts/step-000000001/"});
    const auto other = StateOf("mlp", 2);
    ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome,
                         Resume(*other, refusing,
                                {.root = "/ckpts", .fingerprint = kFingerprint}, [] {}));
    EXPECT_EQ(refusing.strikes(), 1);
    EXPECT_EQ(outcome.from, "/ckpts/step-000000000") << FileOpName(op);
  }
  const auto later = StateOf("mlp", 2);
  ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome, ResumeInto(*later));
  EXPECT_EQ(outcome.from, "/ckpts/step-000000001");
}

// Whenever it fails: while bytes are verified, and while they are on their way into the state.
TEST_F(Keep, ADiskThatFailsInTheMiddleLeavesAnOlderStateWhole) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  const Digest older = state->registry().StateDigest();
  ASSERT_OK(state->Apply({0.5f, 0.5f}));
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  int reads = 0;
  for (bool struck = true; struck; ++reads) {
    FaultyFiles refusing(files_);
    refusing.Plan({.at_call = reads + 1, .op = FileOp::kReadAt,
                   .path_part = "/ckpts/step-000000001/", .lasting = true});
    const auto other = StateOf("mlp", 2);
    ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome,
                         Resume(*other, refusing,
                                {.root = "/ckpts", .fingerprint = kFingerprint}, [] {}));
    struck = refusing.strikes() > 0;
    EXPECT_EQ(other->registry().StateDigest() == older, struck) << "read " << reads;
    EXPECT_EQ(outcome.from, struck ? "/ckpts/step-000000000" : "/ckpts/step-000000001");
    EXPECT_TRUE(other->whole());
  }
  // The manifest, the shard's parts, its frames to verify them, and once more to restore them.
  EXPECT_GT(reads, 5);
}

// The state is whole or spoiled, and nobody would train with it.
TEST_F(Keep, WhatFailsOnItsWayIntoTheStateSpoilsIt) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  int spoiled = 0;
  for (int read = 1; read <= 20; ++read) {
    FaultyFiles refusing(files_);
    refusing.Plan({.at_call = read, .op = FileOp::kReadAt, .path_part = "/ckpts/step-000000000/",
                   .lasting = true});
    const auto other = StateOf("mlp", 2);
    const Digest before = other->registry().StateDigest();
    const auto outcome = Resume(*other, refusing, {.root = "/ckpts", .fingerprint = kFingerprint},
                                [] {});
    if (refusing.strikes() == 0) break;
    EXPECT_FALSE(outcome.ok()) << read;
    const bool is_spoiled = other->Report().step == MemberReport::kSpoiled;
    if (!is_spoiled) EXPECT_EQ(other->registry().StateDigest(), before) << read;
    spoiled += is_spoiled;
  }
  EXPECT_GT(spoiled, 0);
}

TEST(Fingerprints, WhatCanNeverBeAllowedIsToldApart) {
  const std::string ours = "cpu=AVX2 threads=1 lanes=8 steps=20 seed=0";
  ASSERT_OK_AND_ASSIGN(const FingerprintCheck same,
                       CompareFingerprints(ours, "cpu=AVX2 threads=1 lanes=8 steps=9 seed=0"));
  EXPECT_EQ(same.never + same.inexact, "");
  ASSERT_OK_AND_ASSIGN(const FingerprintCheck other,
                       CompareFingerprints(ours, "cpu=AVX512 threads=1 lanes=7 steps=20 seed=0"));
  EXPECT_EQ(other.never, "lanes is 8 in this job and 7 in the checkpoint");
  EXPECT_EQ(other.inexact, "cpu is AVX2 in this job and AVX512 in the checkpoint");
}

TEST(Fingerprints, AnOptionThatOneOfThemDoesNotKnowIsNoDifference) {
  ASSERT_OK_AND_ASSIGN(const FingerprintCheck older,
                       CompareFingerprints("lanes=8 --model.heads=4", "lanes=8 --gone=1"));
  EXPECT_EQ(older.never + older.inexact, "");
  ASSERT_OK_AND_ASSIGN(const FingerprintCheck other,
                       CompareFingerprints("lanes=8 --model.heads=4", "lanes=8 --model.heads=8"));
  EXPECT_EQ(other.inexact, "--model.heads is 4 in this job and 8 in the checkpoint");
  EXPECT_EQ(other.never, "");
}

}  // namespace
}  // namespace keel
