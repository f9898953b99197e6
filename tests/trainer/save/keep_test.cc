// What one worker saves and begins from, without a group: in a directory in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "base/object_files.h"
#include "base/posix_files.h"
#include "ckpt/catalog.h"
#include "ckpt/checkpoint.h"
#include "ckpt/manifest.h"
#include "ckpt/retention.h"
#include "elastic/protocol/records.h"
#include "store/lease/dir_lease.h"
#include "tests/ckpt/into_bucket.h"
#include "tests/ckpt/leaving_objects.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/small_state.h"
#include "trainer/save/checkpointer.h"
#include "trainer/save/keep_options.h"
#include "trainer/save/one_checkpoint.h"
#include "trainer/save/resume.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

using testing::HasSubstr;

const std::string kFingerprint = "threads=1 lanes=2 lane_batch=4 steps=9 seed=3 samples=50";

// One without gradients.
Result<StepOutcome> StepOf(TrainState& state) {
  state.SetPending({});
  return state.Apply({0.5f, 0.5f});
}

// As a program does it that begins before the others are there, or when they are.
Result<ResumeOutcome> ResumeBegun(bool ahead, TrainState& state, Files& files,
                                  const ResumeConfig& config) {
  if (!ahead) return Resume(state, files, config, [] {});
  ResumeAhead begun(state, files, {config.root, config.fingerprint, config.allow_inexact});
  return Resume(state, files, config, [] {}, &begun);
}

class Keep : public testing::Test {
 protected:
  std::unique_ptr<Checkpointer> SaverOf(TrainState& state) {
    auto saver = Checkpointer::Open(state, {.root = "/ckpts", .fingerprint = kFingerprint}, files_,
                                    RealClock());
    KEEL_CHECK(saver.ok(), saver.error().message);
    return std::move(*saver);
  }
  // Of three steps of job "j", below "run" of the bucket.
  void SaveThreeInto(MemoryObjects& bucket) {
    const auto saved = StateOf("mlp", 1);
    ASSERT_OK_AND_ASSIGN(
        const auto saver,
        Checkpointer::Open(*saved, {.root = "/ckpts", .fingerprint = kFingerprint, .job = "j"},
                           files_, RealClock()));
    for (int step = 0; step < 3; ++step) {
      ASSERT_OK(saver->SaveAlone({}));
      ASSERT_OK(StepOf(*saved));
    }
    CopyIntoBucket(files_, "/ckpts", bucket, "run");
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
    MemoryFiles files;
    ASSERT_OK_AND_ASSIGN(const auto saver,
                         Checkpointer::Open(*saved, {.root = "/c", .fingerprint = kFingerprint},
                                            files, RealClock()));
    ASSERT_OK(saver->SaveAlone({}));
    for (const bool ahead : {false, true}) {
      const auto other = StateOf(model, 2);
      ASSERT_NE(saved->registry().StateDigest(), other->registry().StateDigest());
      ASSERT_OK_AND_ASSIGN(
          const ResumeOutcome outcome,
          ResumeBegun(ahead, *other, files, {.root = "/c", .fingerprint = kFingerprint}));
      EXPECT_TRUE(outcome.resumed);
      EXPECT_TRUE(other->whole());
      EXPECT_EQ(saved->registry().StateDigest(), other->registry().StateDigest()) << model;
    }
  }
}

// Each request of a store that does not answer takes a minute.
TEST_F(Keep, AStoreThatGoesAwayWhileItIsReadIsNotAskedAgain) {
  LeavingObjects bucket;
  ASSERT_NO_FATAL_FAILURE(SaveThreeInto(bucket));
  ObjectFiles there(bucket);
  const std::string root = "s3://bucket/run";
  const size_t before = bucket.requests().size();
  ASSERT_OK(ListSteps(there, root));
  const auto listing = static_cast<int>(bucket.requests().size() - before) - 1;
  const ResumeConfig one_that_begins{.root = root, .fingerprint = kFingerprint};
  const ResumeConfig one_that_had_begun{
      .root = root, .resume = false, .fingerprint = kFingerprint, .begun_job = "j"};
  for (const ResumeConfig& config : {one_that_begins, one_that_had_begun}) {
    for (int reads = listing;; ++reads) {
      SCOPED_TRACE(config.begun_job + " after " + std::to_string(reads) + " reads");
      bucket.LeaveAfter(reads, Code::kPeerLost);
      const auto state = StateOf("mlp", 2);
      const auto outcome = Resume(*state, there, config, [] {});
      if (bucket.failed_reads() == 0) {
        ASSERT_OK(outcome);
        EXPECT_GT(reads, listing + 3);
        break;
      }
      ASSERT_FALSE(outcome.ok()) << "it went on from " << outcome->from;
      EXPECT_TRUE(MayBeSound(outcome.error().code)) << "nobody would try again";
      EXPECT_LE(bucket.failed_reads(), 2) << "it is asked once more whether it answers at all";
    }
  }
}

// As one whose disk below is away for a while.
TEST_F(Keep, AStoreThatKeepsOneCheckpointBackIsAskedForTheOneBefore) {
  LeavingObjects bucket;
  ASSERT_NO_FATAL_FAILURE(SaveThreeInto(bucket));
  ObjectFiles there(bucket);
  const std::string newest = "step-000000002/";
  bucket.LeaveAfter(1, Code::kTimeout, newest);   // its manifest comes, and nothing else
  const auto state = StateOf("mlp", 2);
  ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome,
                       Resume(*state, there, {.root = "s3://bucket/run",
                                              .fingerprint = kFingerprint}, [] {}));
  EXPECT_THAT(outcome.from, testing::HasSubstr("step-000000001"));
  EXPECT_GT(bucket.failed_reads(), 0);
}

// A checkpoint holds rows, whatever the memory's order.
TEST_F(Keep, TheOrderOfMemoryIsNotSaved) {
  const at::Tensor rows = torch::arange(24, torch::kFloat).reshape({1, 2, 3, 4});
  const at::Tensor channels_last = rows.contiguous(at::MemoryFormat::ChannelsLast);
  const auto alias = [](size_t) { return CpuBytes::Take::kAlias; };
  ASSERT_OK_AND_ASSIGN(const CpuBytes bytes, CpuBytes::Of({{"x", channels_last}}, alias));
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
  saver->beside().Act({SaveAction::kBegin, false, "test"});
  // Forward changes buffers at once; parameters wait for the copy.
  for (const NamedTensor& buffer : state->model().tensors.buffers) buffer.tensor.fill_(7);
  saver->beside().AwaitCopy();
  {
    const torch::NoGradGuard guard;
    for (const at::Tensor& parameter : state->parameters()) parameter.zero_();
  }
  while (saver->beside().Vote().state == SaveState::kWriting) std::this_thread::yield();
  ASSERT_EQ(saver->beside().Vote().state, SaveState::kDurable);
  saver->beside().Act({SaveAction::kCommit, false, "test"});
  while (saver->beside().Vote().state == SaveState::kCommitting) std::this_thread::yield();
  const auto other = StateOf("resnet", 2);
  ASSERT_OK(ResumeInto(*other));
  EXPECT_EQ(other->registry().StateDigest(), before);
}

TEST_F(Keep, WhatTheGroupDidNotDecideIsGivenUpAndWantedAgain) {
  const auto state = StateOf("mlp", 1);
  const auto saver = SaverOf(*state);
  saver->BeginEpoch({.rank = 0, .world = 1, .prefix = "p", .fingerprint = kFingerprint});
  EXPECT_FALSE(saver->beside().Vote().wanted);
  saver->beside().Act({SaveAction::kBegin, false, "test"});
  saver->EndEpoch();
  EXPECT_EQ(saver->beside().Vote().state, SaveState::kIdle);
  EXPECT_TRUE(saver->beside().Vote().wanted);
  ASSERT_OK_AND_ASSIGN(const auto steps, ListSteps(files_, "/ckpts"));
  EXPECT_TRUE(steps.empty()) << steps[0].dir << ": " << steps[0].reason;
}

TEST_F(Keep, AShareThatWasCalledDurableIsLeftWhenTheGroupBreaks) {
  const auto state = StateOf("mlp", 1);
  const auto saver = SaverOf(*state);
  saver->BeginEpoch({.rank = 1, .world = 2, .prefix = "p", .fingerprint = kFingerprint});
  saver->beside().Act({SaveAction::kBegin, false, "test"});
  while (saver->beside().Vote().state == SaveState::kWriting) std::this_thread::yield();
  ASSERT_EQ(saver->beside().Vote().state, SaveState::kDurable);
  saver->EndEpoch();
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List("/ckpts/step-000000000"));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_THAT(entries[0].name, HasSubstr("-shard-0001-of-0002.keel"));
}

// It is the first worker that commits, and it may have died before it had.
TEST_F(Keep, ASaveIsWantedAgainWhereNobodyHasTakenTheCommitForSettled) {
  const auto state = StateOf("mlp", 1);
  const auto saver = SaverOf(*state);
  SaveBeside& beside = saver->beside();
  const auto save = [&](const std::string& prefix) {
    saver->BeginEpoch({.rank = 1, .world = 2, .prefix = prefix, .fingerprint = kFingerprint});
    beside.Act({SaveAction::kBegin, false, "test"});
    while (beside.Vote().state == SaveState::kWriting) std::this_thread::yield();
    const SaveVote durable{SaveState::kDurable, false};
    beside.Act(DecideSave({durable, durable}, 0, 0));
    EXPECT_EQ(beside.Vote().state, SaveState::kIdle);
  };
  save("p");
  beside.Act(DecideSave({{SaveState::kCommitting, false}, beside.Vote()}, 1, 0));
  saver->EndEpoch();
  EXPECT_TRUE(beside.Vote().wanted);
  save("q");
  beside.Act(DecideSave({{SaveState::kIdle, false}, beside.Vote()}, 1, 0));
  saver->EndEpoch();
  EXPECT_FALSE(beside.Vote().wanted);
}

// A job begins with what another one in /from has, which makes another checkpoint, and removes this
// one, at the n-th call.
void ExpectBegunBesideRemovals(const ResumeConfig& config, bool resumes) {
  int newer = 0;
  for (int call = 1, strikes = 1; strikes > 0 && !testing::Test::HasFailure(); ++call) {
    MemoryFiles memory;
    const auto theirs = StateOf("mlp", 1);
    ASSERT_OK_AND_ASSIGN(const auto saver,
                        Checkpointer::Open(*theirs, {.root = "/from", .fingerprint = kFingerprint},
                                           memory, RealClock()));
    ASSERT_OK(saver->SaveAlone({}));
    FaultyFiles files(memory);
    files.Plan({.kind = Fault::Kind::kAct, .at_call = call, .act = [&] {
                  ASSERT_OK(StepOf(*theirs));
                  ASSERT_OK(saver->SaveAlone({}));
                  ASSERT_OK(ApplyRetention(memory, "/from", {.keep_last = 1}));
                }});
    const auto own = StateOf("mlp", 2);
    const auto outcome = Resume(*own, files, config, [] {});
    ASSERT_OK(outcome) << "call " << call;
    EXPECT_EQ(outcome->resumed, resumes);
    EXPECT_TRUE(own->whole());
    newer += outcome->from == "/from/step-000000001" ? 1 : 0;
    strikes = files.strikes();
  }
  EXPECT_GT(newer, 0);
}

TEST_F(Keep, WeightsOfAJobThatRunsAreTakenWhateverItRemovesMeanwhile) {
  ExpectBegunBesideRemovals(
      {.root = "/own", .init_from = "/from", .fingerprint = kFingerprint}, /*resumes=*/false);
}

TEST_F(Keep, ADirectoryHasOneJob) {
  const auto state = StateOf("mlp", 1);
  const auto first = SaverOf(*state);
  const auto second = SaverOf(*state);
  first->BeginEpoch({.rank = 0, .world = 1, .prefix = "p", .fingerprint = ""});
  ASSERT_OK(first->directory().Hold());
  const Status refused = second->directory().Hold();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("another job saves in /ckpts"));
  // Somebody else has become the first rank.
  first->BeginEpoch({.rank = 1, .world = 2, .prefix = "q", .fingerprint = ""});
  EXPECT_OK(second->directory().Hold());
}

// Its launcher may yet put it into the later epoch, so this takes Fence::kWordLimit.
TEST_F(Keep, AWorkerWhoseJobHasGoneOnWithoutItCommitsNothing) {
  TempDir shared;
  PosixFiles disk;
  Random random(EntropySeed());
  ASSERT_OK_AND_ASSIGN(const auto lease, DirLease::Open(disk, random, shared.path(), {"j", "r"}));
  const auto state = StateOf("mlp", 1);
  ASSERT_OK_AND_ASSIGN(
      const auto saver,
      Checkpointer::Open(*state,
                         {.root = "/ckpts", .fingerprint = kFingerprint, .job = "j",
                          .lease = lease->folder()},
                         files_, RealClock()));
  saver->BeginEpoch({.epoch = 4, .rank = 0, .world = 1, .prefix = "p", .fingerprint = ""});
  ASSERT_OK(saver->directory().Hold());
  ASSERT_OK(lease->Claim(1, LinkText({.place = {.term = 2, .epoch = 5}})));
  const Status fenced = saver->SaveAlone({});
  ASSERT_FALSE(fenced.ok());
  EXPECT_EQ(fenced.error().code, Code::kStaleEpoch);
  ASSERT_OK_AND_ASSIGN(const auto steps, ListSteps(files_, "/ckpts"));
  EXPECT_TRUE(steps.empty()) << steps[0].dir << ": " << steps[0].reason;
  // It is in that one now.
  saver->BeginEpoch({.epoch = 5, .rank = 0, .world = 1, .prefix = "q", .fingerprint = ""});
  EXPECT_OK(saver->SaveAlone({}));
  EXPECT_EQ(saver->NewestSaved(), 0u);
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
  ASSERT_OK(StepOf(*state));
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

// It may never be read again, and is then not taken for what this job has saved.
TEST_F(Keep, AStepOfOneThatCannotBeReadIsSavedOnceItIsMadeAgain) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  ASSERT_OK(StepOf(*state));
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  const std::string newest = "/ckpts/step-000000001";
  for (const std::string& part : {newest + "/manifest.json", std::string("-shard-")}) {
    for (const bool is_lost : {false, true}) {
      FaultyFiles refusing(files_);
      refusing.Plan({.op = FileOp::kReadAt, .path_part = part});
      const auto other = StateOf("mlp", 2);
      ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome,
                           Resume(*other, refusing,
                                  {.root = "/ckpts", .fingerprint = kFingerprint}, [] {}));
      ASSERT_THAT(outcome.unread, testing::ElementsAre(1)) << part;
      ASSERT_OK(StepOf(*other));
      const std::string before = ReadManifest(files_, newest)->attempt;
      const auto saver = SaverOf(*other);
      saver->at_once().NoteUnread(outcome.unread);
      if (is_lost) {
        const auto names = files_.List(newest);
        ASSERT_OK(names);
        for (const DirEntry& name : *names) {
          const std::string path = JoinPath(newest, name.name);
          if (path.find(part) == path.npos || name.name.ends_with(".lock")) continue;
          ASSERT_OK(WriteDurably(files_, path, "what the disk returns"));
        }
      }
      ASSERT_OK(saver->SaveAlone({}));
      ASSERT_OK_AND_ASSIGN(const Manifest after, ReadManifest(files_, newest));
      EXPECT_EQ(after.attempt != before, is_lost) << part;
      ASSERT_OK(saver->SaveAlone({}));
      EXPECT_EQ(ReadManifest(files_, newest)->attempt, after.attempt) << "it is there now";
    }
  }
}

// Whenever it fails: while bytes are verified, and while they are on their way into the state.
TEST_F(Keep, ADiskThatFailsInTheMiddleLeavesAnOlderStateWhole) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  const Digest older = state->registry().StateDigest();
  ASSERT_OK(StepOf(*state));
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  for (const bool ahead : {false, true}) {
    int reads = 0;
    for (bool struck = true; struck; ++reads) {
      FaultyFiles refusing(files_);
      refusing.Plan({.at_call = reads + 1, .op = FileOp::kReadAt,
                     .path_part = "/ckpts/step-000000001/", .lasting = true});
      const auto other = StateOf("mlp", 2);
      ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome,
                           ResumeBegun(ahead, *other, refusing,
                                       {.root = "/ckpts", .fingerprint = kFingerprint}));
      struck = refusing.strikes() > 0;
      EXPECT_EQ(other->registry().StateDigest() == older, struck) << "read " << reads;
      EXPECT_EQ(outcome.from, struck ? "/ckpts/step-000000000" : "/ckpts/step-000000001");
      EXPECT_TRUE(other->whole());
    }
    // The manifest, the shard's parts, its frames to verify them, and once more to restore them.
    EXPECT_GT(reads, 5);
  }
}

// The state is whole or spoiled, and nobody would train with it.
TEST_F(Keep, WhatFailsOnItsWayIntoTheStateSpoilsIt) {
  const auto state = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*state)->SaveAlone({}));
  for (const bool ahead : {false, true}) {
    int spoiled = 0;
    for (int read = 1; read <= 20; ++read) {
      FaultyFiles refusing(files_);
      refusing.Plan({.at_call = read, .op = FileOp::kReadAt,
                     .path_part = "/ckpts/step-000000000/", .lasting = true});
      const auto other = StateOf("mlp", 2);
      const Digest before = other->registry().StateDigest();
      const auto outcome = ResumeBegun(ahead, *other, refusing,
                                       {.root = "/ckpts", .fingerprint = kFingerprint});
      if (refusing.strikes() == 0) break;
      EXPECT_FALSE(outcome.ok()) << read;
      if (other->whole()) {
        EXPECT_EQ(other->registry().StateDigest(), before) << read;
      } else {
        ++spoiled;
      }
    }
    EXPECT_GT(spoiled, 0);
  }
}

// --- Begun before all have met ---

class BegunAhead : public Keep {
 protected:
  void SetUp() override {
    const auto saved = StateOf("mlp", 1);
    ASSERT_OK(SaverOf(*saved)->SaveAlone({}));
    saved_ = saved->registry().StateDigest();
    state_ = StateOf("mlp", 2);
    own_ = state_->registry().StateDigest();
  }
  std::unique_ptr<ResumeAhead> Begin(const std::string& fingerprint = kFingerprint) {
    return std::make_unique<ResumeAhead>(*state_, files_,
                                         ResumeAhead::What{"/ckpts", fingerprint});
  }

  std::unique_ptr<TrainState> state_;
  Digest saved_, own_;
};

TEST_F(BegunAhead, NothingIsTakenBeforeItIsWanted) {
  const auto ahead = Begin();
  ahead->Finish();
  EXPECT_NE(state_->registry().StateDigest(), own_);
  EXPECT_TRUE(state_->filled_ahead());
  EXPECT_EQ(state_->step(), 0u);
  EXPECT_EQ(state_->Report().step, MemberReport::kFresh);
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files_, "/ckpts/step-000000000"));
  EXPECT_TRUE(ahead->Filled(*checkpoint));
}

TEST_F(BegunAhead, WhatWasSavedMeanwhileIsTakenInstead) {
  const auto ahead = Begin();
  ahead->Finish();
  const auto further = StateOf("mlp", 3);
  ASSERT_OK(StepOf(*further));
  ASSERT_OK(SaverOf(*further)->SaveAlone({}));
  ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome,
                       Resume(*state_, files_, {.root = "/ckpts", .fingerprint = kFingerprint},
                              [] {}, ahead.get()));
  EXPECT_EQ(outcome.from, "/ckpts/step-000000001");
  EXPECT_EQ(state_->registry().StateDigest(), further->registry().StateDigest());
}

// The group of the first epoch may break before its members have met.
TEST_F(BegunAhead, WhatAnEpochWithoutAGroupLeavesIsTakenWithItsBuffers) {
  ASSERT_OK(files_.Rename("/ckpts/step-000000000", "/gone"));
  const auto saved = StateOf("resnet", 1);
  for (const NamedTensor& buffer : saved->model().tensors.buffers) buffer.tensor.fill_(3);
  ASSERT_OK(SaverOf(*saved)->SaveAlone({}));
  state_ = StateOf("resnet", 2);
  const auto ahead = Begin();
  ahead->Finish();
  ASSERT_TRUE(state_->filled_ahead());
  state_->Drop();
  ASSERT_OK(Resume(*state_, files_, {.root = "/ckpts", .fingerprint = kFingerprint}, [] {},
                   ahead.get()));
  EXPECT_EQ(state_->registry().StateDigest(), saved->registry().StateDigest());
}

TEST_F(BegunAhead, NobodyBeginsAnewWithWhatWasUnpacked) {
  const auto ahead = Begin();
  ahead->Finish();
  ASSERT_OK(files_.Rename("/ckpts/step-000000000", "/gone"));
  for (const char* init_from : {"", "/weights.safetensors"}) {
    const auto outcome = Resume(*state_, files_, {.root = "/ckpts", .init_from = init_from,
                                                  .fingerprint = kFingerprint},
                                [] {}, ahead.get());
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message, HasSubstr("Start the job again"));
  }
  EXPECT_FALSE(state_->TakeOwn().ok());
}

TEST_F(BegunAhead, AnotherJobsIsNotTouched) {
  Begin("threads=1 lanes=3 lane_batch=4 steps=9 seed=3 samples=50")->Finish();
  EXPECT_FALSE(state_->filled_ahead());
  EXPECT_EQ(state_->registry().StateDigest(), own_);
  EXPECT_OK(state_->TakeOwn());
}

// Whenever it is stopped, what it has touched is known.
TEST_F(BegunAhead, StoppedItIsAsGoodAsNeverBegun) {
  for (int turns = 0; turns < 200; turns += 10) {
    state_ = StateOf("mlp", 2);
    const auto ahead = Begin();
    for (int turn = 0; turn < turns; ++turn) std::this_thread::yield();
    ahead->Stop();
    if (!state_->filled_ahead()) {
      EXPECT_EQ(state_->registry().StateDigest(), own_);
    }
    ASSERT_OK(Resume(*state_, files_, {.root = "/ckpts", .fingerprint = kFingerprint}, [] {},
                     ahead.get()));
    EXPECT_EQ(state_->registry().StateDigest(), saved_);
  }
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
  ASSERT_OK_AND_ASSIGN(const FingerprintCheck of_0_1,
                       CompareFingerprints("lanes=8 decay=all", "lanes=8"));
  EXPECT_EQ(of_0_1.never + of_0_1.inexact, "");
  ASSERT_OK_AND_ASSIGN(const FingerprintCheck rule,
                       CompareFingerprints("decay=all", "decay=matrices"));
  EXPECT_EQ(rule.inexact, "decay is all in this job and matrices in the checkpoint");
  EXPECT_EQ(other.never, "");
}

TEST(MirrorPlace, IsAnotherOneHoweverItIsSpelled) {
  OptionTable table("train", "Trains.");
  AddKeepOptions(table);
  const auto status = [&](const std::string& from, const std::string& to) -> Status {
    const Result<Options> options = ParseOptions(
        table, {{"--checkpoint-dir=" + from, "--checkpoint-mirror=" + to}, {}, {}});
    if (!options.ok()) return options.error();
    const Result<KeepConfig> config = KeepConfigFrom(*options);
    return config.ok() ? Ok() : Status(config.error());
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"runs/a", "runs/a"}, {"runs/a", "./runs/a/"}, {"/tmp/../tmp//", "/tmp"},
           {"s3://b/run", "s3://b/run/"}}) {
    const Status same = status(from, to);
    ASSERT_FALSE(same.ok()) << from << " " << to;
    EXPECT_THAT(same.error().message, HasSubstr("the same place")) << from << " " << to;
  }
  EXPECT_OK(status("runs/a", "runs/ab"));
  EXPECT_OK(status("s3://b/run", "s3://b/run2"));
  EXPECT_OK(status("/", "/a"));
}

// --- From the checkpoint of another job ---

TEST_F(Keep, AJobThatRunsMayRemoveWhatAnotherOneBeginsFrom) {
  for (const char* named : {"/from", "/from@latest"}) {
    SCOPED_TRACE(named);
    ExpectBegunBesideRemovals(
        {.root = "/own", .resume_from = named, .fingerprint = kFingerprint}, /*resumes=*/true);
  }
}

TEST_F(Keep, AJobGoesOnWhenWhatItBeganFromIsGone) {
  const auto own = StateOf("mlp", 1);
  const std::vector<std::string> gone = {"/from@0", "/from@latest", "/from",
                                         "/from/step-000000000", "/ckpts/from",
                                         "s3://bucket/from@0", "s3://bucket/from"};
  for (const std::string& named : gone) {
    const auto refused = ResumeInto(*own, {.resume_from = named});
    ASSERT_FALSE(refused.ok()) << named << ": it has nothing of its own yet";
  }
  ASSERT_OK(SaverOf(*own)->SaveAlone({}));
  for (const std::string& named : gone) {
    const auto state = StateOf("mlp", 2);
    ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome, ResumeInto(*state, {.resume_from = named}));
    EXPECT_EQ(outcome.from, "/ckpts/step-000000000") << named;
    EXPECT_EQ(state->registry().StateDigest(), own->registry().StateDigest());
  }
}

TEST_F(Keep, AStepOfItsOwnThatIsGoneOrNotTheNewestIsRefused) {
  const auto own = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*own)->SaveAlone({}));
  ASSERT_OK(StepOf(*own));
  ASSERT_OK(SaverOf(*own)->SaveAlone({}));
  for (const char* named : {"/ckpts@7", "/ckpts/@7", "/ckpts@0", "/ckpts/step-000000000"}) {
    const auto refused = ResumeInto(*own, {.resume_from = named});
    EXPECT_FALSE(refused.ok()) << named << ": it went on from " << refused->from;
  }
  for (const char* named : {"/ckpts@1", "/ckpts", "/ckpts/step-000000001"}) {
    EXPECT_OK(ResumeInto(*own, {.resume_from = named})) << named;
  }
}

// --- A place that is silent ---

// As if the disk answered only once the launcher has heard of the worker.
TEST_F(Keep, WhoeverWaitsForASilentPlaceShowsThatItIsAlive) {
  const auto saved = StateOf("mlp", 1);
  ASSERT_OK_AND_ASSIGN(
      const auto saver,
      Checkpointer::Open(*saved, {.root = "/ckpts", .fingerprint = kFingerprint, .job = "j"},
                         files_, RealClock()));
  ASSERT_OK(saver->SaveAlone({}));
  struct Wait {
    FileOp op;
    const char* path;
    ResumeConfig config;
  };
  const ResumeConfig own{.root = "/ckpts", .fingerprint = kFingerprint};
  const ResumeConfig begun{.root = "/ckpts", .fingerprint = kFingerprint, .begun_job = "j"};
  const ResumeConfig from{
      .root = "/own", .resume_from = "/ckpts@latest", .fingerprint = kFingerprint};
  const ResumeConfig beside{
      .root = "/ckpts", .resume_from = "/elsewhere", .fingerprint = kFingerprint};
  for (const auto& [op, path, config] :
       {Wait{FileOp::kList, "/ckpts", own}, Wait{FileOp::kOpen, "/ckpts/", own},
        Wait{FileOp::kOpen, ".keel", begun}, Wait{FileOp::kList, "/ckpts", from},
        Wait{FileOp::kStat, "/elsewhere", beside}}) {
    std::mutex mutex;
    std::condition_variable heard;
    int ticks = 0;
    bool is_alive = false;
    FaultyFiles files(files_);
    files.Plan({.kind = Fault::Kind::kAct, .op = op, .path_part = path, .act = [&] {
                  std::unique_lock lock(mutex);
                  is_alive = heard.wait_for(lock, std::chrono::seconds(30),
                                            [&] { return ticks > 0; });
                }});
    const auto state = StateOf("mlp", 2);
    ASSERT_OK(Resume(*state, files, config, [&] {
      const std::lock_guard lock(mutex);
      ++ticks;
      heard.notify_all();
    }));
    EXPECT_EQ(files.strikes(), 1) << path;
    EXPECT_TRUE(is_alive) << FileOpName(op) << " of " << path;
  }
}

// Its directory has the name of another step, which is then not what the job goes on from.
TEST_F(Keep, AJobDoesNotGoOnFromAnotherStepThanTheOneNamed) {
  const auto saved = StateOf("mlp", 1);
  ASSERT_OK(SaverOf(*saved)->SaveAlone({}));
  ASSERT_OK(files_.Rename("/ckpts", "/from"));
  ASSERT_OK(files_.Rename("/from/step-000000000", "/from/step-000000007"));
  const auto state = StateOf("mlp", 2);
  const auto refused = ResumeInto(*state, {.resume_from = "/from@7"});
  ASSERT_FALSE(refused.ok()) << "it went on from " << refused->from;
  EXPECT_THAT(refused.error().message, HasSubstr("its manifest is of step 0"));
  ASSERT_OK_AND_ASSIGN(const ResumeOutcome outcome,
                       ResumeInto(*state, {.resume_from = "/from/step-000000007"}));
  EXPECT_EQ(outcome.from, "/from/step-000000007");
}

}  // namespace
}  // namespace keel
