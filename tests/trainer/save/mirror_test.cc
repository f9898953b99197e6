// A mirror beside a directory that checkpoints are saved in, both on a disk in memory that fails.
#include "trainer/save/mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/memory_objects.h"
#include "base/object_files.h"
#include "ckpt/catalog.h"
#include "ckpt/verify.h"
#include "tests/ckpt/faulty_objects.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "trainer/save/job_directory.h"
#include "trainer/save/mirror_wait.h"
#include "trainer/save/steps_in.h"

namespace keel {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Duration kLong = std::chrono::seconds(30);

// A mirror's thread may outlast End() on a busy machine, and the disk it works on must outlast it.
struct Disk {
  MemoryFiles memory;
  FaultyFiles files{memory};
};

Disk& NewDisk() {
  static auto* const disks = new std::deque<Disk>();
  return disks->emplace_back();
}

class MirrorTest : public testing::Test {
 protected:
  void Save(uint64_t step) {
    MemorySource source(state_.Spans());
    ASSERT_OK(SaveCheckpoint(files_, PlanOf(state_, "/here", step, step, 4096), source, {}, 0));
  }
  std::vector<uint64_t> WholeSteps(Files& files, const std::string& root) {
    std::vector<uint64_t> steps;
    const auto entries = ListSteps(files, root);
    for (const StepEntry& entry : entries.ok() ? *entries : std::vector<StepEntry>()) {
      const auto checkpoint = Checkpoint::Open(files, entry.dir);
      if (!checkpoint.ok()) continue;
      const auto damages = VerifyFrames(**checkpoint, {});
      if (damages.ok() && damages->empty()) steps.push_back(entry.step);
    }
    return steps;
  }
  static void CopyOf(Files& from, const std::string& dir, Files& to) {
    ASSERT_OK_AND_ASSIGN(const auto entries, from.List(dir));
    ASSERT_OK(MakeDirs(to, dir));
    for (const DirEntry& entry : entries) {
      const std::string path = JoinPath(dir, entry.name);
      if (entry.kind == FileKind::kDirectory) {
        CopyOf(from, path, to);
      } else {
        ASSERT_OK(WriteDurably(to, path, *ReadWhole(from, path, 1 << 24)));
      }
    }
  }
  std::unique_ptr<Mirror> MirrorOf(const std::string& job, RetentionPolicy retention = {}) {
    return std::make_unique<Mirror>(files_, RealClock(), MirrorPlaces{"/here", "/there", retention},
                                    job, "");
  }

  // However long it takes: the thread has less precedence than all others of the machine.
  static void AwaitFailure(const Mirror& mirror) {
    while (mirror.why_not().empty()) RealClock().SleepFor(std::chrono::milliseconds(1));
  }

  Disk& disk_ = NewDisk();
  MemoryFiles& memory_ = disk_.memory;
  FaultyFiles& files_ = disk_.files;
  TestState state_ = TestState::Make(3, 20'000);
};

TEST_F(MirrorTest, CopiesWhatIsThereAndWhatComes) {
  Save(10);
  const auto mirror = MirrorOf("j");
  ASSERT_OK(mirror->Hold(1, [] {}));
  EXPECT_EQ(mirror->newest(), std::nullopt);
  mirror->Begin(1);
  ASSERT_TRUE(mirror->AwaitMirrored(10, kLong)) << mirror->why_not();
  Save(20);
  mirror->Wake();
  ASSERT_TRUE(mirror->AwaitMirrored(20, kLong)) << mirror->why_not();
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(10, 20));
  EXPECT_EQ(*ReadWhole(files_, "/there/step-000000020/manifest.json", 1 << 20),
            *ReadWhole(files_, "/here/step-000000020/manifest.json", 1 << 20));
}

TEST_F(MirrorTest, KeepsThereWhatIsKeptHere) {
  const auto mirror = MirrorOf("j", {.keep_last = 1, .keep_every = 20});
  mirror->Begin(1);
  for (const uint64_t step : {10, 20, 30, 40, 50}) {
    Save(step);
    mirror->Wake();
    ASSERT_TRUE(mirror->AwaitMirrored(step, kLong, /*all=*/true)) << mirror->why_not();
  }
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(20, 40, 50));
}

TEST_F(MirrorTest, AnotherJobIsRefusedAndTheNextEpochGoesOn) {
  Save(10);
  const auto first = MirrorOf("a");
  ASSERT_OK(first->Hold(1, [] {}));
  first->Begin(1);
  ASSERT_TRUE(first->AwaitMirrored(10, kLong));
  const auto other = MirrorOf("b");
  const Status held = other->Hold(1, [] {});
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code, Code::kExists);
  EXPECT_THAT(held.error().message, HasSubstr("another job saves in /there"));
  first->Begin(2);
  first->End();
  EXPECT_OK(other->Hold(1, [] {})) << "nobody holds it any more";
}

// Each call there fails once. What is there stays whole, and the new one follows.
TEST_F(MirrorTest, WhatFailsIsTriedAgainAndWhatIsThereStaysWhole) {
  Save(10);
  for (int call = 1;; ++call) {
    auto& [memory, files] = NewDisk();
    CopyOf(memory_, "/here", memory);
    Mirror mirror(files, RealClock(), {"/here", "/there", {}}, "j", "");
    files.Plan({.at_call = call, .path_part = "/there", .error_number = ENOSPC});
    mirror.Begin(1);
    while (!mirror.AwaitMirrored(10, std::chrono::milliseconds(5))) mirror.Wake();
    mirror.End();
    EXPECT_THAT(WholeSteps(memory, "/there"), ElementsAre(10)) << "call " << call;
    if (files.strikes() == 0) break;
    ASSERT_LT(call, 1000);
  }
}

TEST_F(MirrorTest, WhoeverDiesLeavesAWholeOneOrNone) {
  Save(10);
  for (int call = 1;; call += kPointStride) {
    auto& [memory, files] = NewDisk();
    CopyOf(memory_, "/here", memory);
    Mirror dying(files, RealClock(), {"/here", "/there", {}}, "j", "");
    files.Plan({.kind = Fault::Kind::kCrash, .at_call = call, .path_part = "/there"});
    dying.Begin(1);
    while (!files.crashed() && !dying.AwaitMirrored(10, std::chrono::milliseconds(1))) {
    }
    dying.End();
    const bool has_died = files.crashed();
    const auto entries = ListSteps(memory, "/there");
    for (const StepEntry& entry : entries.ok() ? *entries : std::vector<StepEntry>()) {
      EXPECT_NE(entry.state, StepState::kDamaged) << "call " << call;
    }
    // The next one takes its place.
    Mirror next(memory, RealClock(), {"/here", "/there", {}}, "j", "");
    next.Begin(1);
    EXPECT_TRUE(next.AwaitMirrored(10, kLong)) << "call " << call << ": " << next.why_not();
    next.End();
    EXPECT_THAT(WholeSteps(memory, "/there"), ElementsAre(10)) << "call " << call;
    if (!has_died) break;
    ASSERT_LT(call, 1000);
  }
}

// A slow mirror and a quick directory: the step that is being copied stays for so long.
TEST_F(MirrorTest, WhatIsBeingCopiedIsNotRemoved) {
  RetentionPolicy one{.keep_last = 1, .needed = 10};
  for (const uint64_t step : {10, 20, 30}) Save(step);
  ASSERT_OK(ApplyRetention(files_, "/here", one));
  EXPECT_THAT(WholeSteps(files_, "/here"), ElementsAre(10, 30));
}

// Silence is not emptiness.
TEST_F(MirrorTest, APlaceIsEmptyOnlyWhereItShowsThat) {
  EXPECT_TRUE(StepsIn(files_, "/nowhere")->empty());
  EXPECT_TRUE(StepsIn(files_, "")->empty());
  MemoryObjects bucket;
  ObjectFiles there(bucket);
  EXPECT_TRUE(StepsIn(there, "s3://bucket/run")->empty());
  FaultyObjects gone(bucket, FaultyObjects::Fault::kDies, 1);
  ObjectFiles silent(gone);
  EXPECT_FALSE(StepsIn(silent, "s3://bucket/run").ok());
  EXPECT_EQ(StepsWithin(files_, "/nowhere", kLong, [] {})->size(), 0u);
}

TEST_F(MirrorTest, WhoeverWaitsIsToldWhatIsWhere) {
  Save(10);
  const auto mirror = MirrorOf("j");
  files_.Plan({.op = FileOp::kWriteAt, .path_part = "/there/step", .error_number = ENOSPC,
               .lasting = true});
  mirror->Begin(1);
  MirrorWait wait(*mirror, RealClock(), "/here", 10, /*all=*/false);
  AwaitFailure(*mirror);
  const Result<bool> not_yet = wait.Await(Duration(0), std::nullopt);
  ASSERT_OK(not_yet);
  EXPECT_FALSE(*not_yet);
  const Result<bool> late = wait.Await(Duration(0), RealClock().Monotonic() + kEndMargin);
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().message, AllOf(HasSubstr("saved in /here, but not in /there"),
                                          HasSubstr("No space left")));
}

// Whoever waits with a deadline for all that is kept for ever does not keep it from being copied.
TEST_F(MirrorTest, AStopWhileAllIsWaitedForLetsTheCopiesGoOn) {
  for (const uint64_t step : {10, 20, 25}) Save(step);
  const auto mirror = MirrorOf("j", {.keep_every = 10});
  mirror->Begin(1);
  MirrorWait wait(*mirror, RealClock(), "/here", 25, /*all=*/true);
  const TimePoint deadline = RealClock().Monotonic() + kLong;
  Result<bool> is_there = false;
  while (is_there.ok() && !*is_there) {
    is_there = wait.Await(std::chrono::milliseconds(1), deadline);
  }
  ASSERT_OK(is_there);
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(10, 20, 25));
}

TEST_F(MirrorTest, WhatIsOfAnotherJobDoesNotCount) {
  Save(10);
  const TestState other = TestState::Make(4, 20'000);
  MemorySource source(other.Spans());
  SavePlan plan = PlanOf(other, "/there", 90, 90, 4096);
  plan.description.metadata["fingerprint"] = std::string("of another model");
  ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));
  const auto mirror = MirrorOf("j");
  mirror->Begin(1);
  AwaitFailure(*mirror);
  EXPECT_FALSE(mirror->AwaitMirrored(10, Duration(0)));
  EXPECT_THAT(mirror->why_not(), HasSubstr("/there/step-000000090 is newer, and of a job with"));
}

// A job may be made longer, and its fingerprint tells how long it is.
TEST_F(MirrorTest, WhatAShorterFormOfTheJobLeftThereIsItsOwn) {
  const auto save = [this](const std::string& root, uint64_t step, const std::string& fingerprint) {
    MemorySource source(state_.Spans());
    SavePlan plan = PlanOf(state_, root, step, step, 4096);
    plan.description.metadata["fingerprint"] = fingerprint;
    ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));
  };
  save("/here", 10, "lanes=2 steps=90");
  save("/there", 20, "lanes=2 steps=50");
  const auto mirror = MirrorOf("j", {.keep_every = 10});
  mirror->Begin(1);
  ASSERT_TRUE(mirror->AwaitMirrored(20, kLong, /*all=*/true)) << mirror->why_not();
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(10, 20));
}

// It could not be read, so the job resumed from an older one, and makes those steps once more.
TEST_F(MirrorTest, WhatThisJobPassedOverCountsForNothing) {
  for (const uint64_t step : {10, 30}) Save(step);
  const auto before = MirrorOf("j", {.keep_every = 10});
  before->Begin(1);
  ASSERT_TRUE(before->AwaitMirrored(30, kLong, /*all=*/true)) << before->why_not();
  before->End();
  Save(40);
  const auto mirror = MirrorOf("j", {.keep_last = 1});
  mirror->Begin(1, 10);
  ASSERT_TRUE(mirror->AwaitMirrored(10, kLong, /*all=*/true)) << mirror->why_not();
  EXPECT_EQ(mirror->newest(), 10u);
  EXPECT_FALSE(mirror->AwaitMirrored(20, Duration(0)));
  Save(20);
  mirror->Wake(20);
  ASSERT_TRUE(mirror->AwaitMirrored(20, kLong, /*all=*/true)) << mirror->why_not();
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(20, 30)) << "what is newer stays there";
  mirror->Wake(40);   // by now it is the job's own
  EXPECT_TRUE(mirror->AwaitMirrored(40, kLong)) << mirror->why_not();
}

// By its frames or by its description: others that are kept for ever follow it.
TEST_F(MirrorTest, ADamagedStepHereKeepsNoOtherFromThere) {
  for (const uint64_t step : {10, 20, 30}) Save(step);
  const std::string step = "/here/step-000000020/";
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List(step));
  for (const DirEntry& entry : entries) {
    if (entry.name == "manifest.json") continue;
    ASSERT_OK_AND_ASSIGN(std::string bytes, ReadWhole(files_, step + entry.name, 1 << 24));
    for (size_t at = bytes.size() - 400; at < bytes.size(); ++at) bytes[at] ^= 1;
    ASSERT_OK(WriteDurably(files_, step + entry.name, bytes));
  }
  ASSERT_FALSE(Checkpoint::Open(files_, "/here/step-000000020").ok());
  const auto mirror = MirrorOf("j", {.keep_every = 10});
  mirror->Begin(1);
  ASSERT_TRUE(mirror->AwaitMirrored(30, kLong, /*all=*/true)) << mirror->why_not();
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(10, 30));
  EXPECT_THAT(mirror->why_not(), HasSubstr("/here/step-000000020 is damaged, and is not copied"));
}

// A store that refuses a put by its sum, or returns other bytes, may work again.
TEST_F(MirrorTest, WhatComesOutDamagedThereIsTriedForAsLongAsItIsWholeHere) {
  Save(10);
  constexpr int kDamages = 5;   // more often than what is damaged here is tried
  int damaged = 0;              // by the mirror's thread
  const auto damage = [&] {
    const auto entries = memory_.List("/there/step-000000010");
    ASSERT_OK(entries);
    for (const DirEntry& entry : *entries) {
      const std::string path = "/there/step-000000010/" + entry.name;
      auto bytes = ReadWhole(memory_, path, 1 << 24);
      if (damaged == kDamages || !bytes.ok() || bytes->size() < 4096) continue;
      bytes->back() ^= 1;
      ASSERT_OK(WriteDurably(memory_, path, *bytes));
      ++damaged;
    }
  };
  for (int call = 1; call <= 100; ++call) {
    files_.Plan({.kind = Fault::Kind::kAct, .at_call = call, .op = FileOp::kOpen,
                 .path_part = "/there/step-000000010/", .act = damage});
  }
  const auto mirror = MirrorOf("j");
  mirror->Begin(1);
  while (!mirror->AwaitMirrored(10, std::chrono::milliseconds(5))) mirror->Wake();
  EXPECT_EQ(damaged, kDamages);
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(10));
}

TEST_F(MirrorTest, ADamagedStepThereIsNamed) {
  Save(10);
  ASSERT_OK(MakeDirs(files_, "/there/step-000000010"));
  ASSERT_OK(WriteDurably(files_, "/there/step-000000010/manifest.json", "no manifest"));
  const auto mirror = MirrorOf("j");
  mirror->Begin(1);
  AwaitFailure(*mirror);
  EXPECT_FALSE(mirror->AwaitMirrored(10, Duration(0)));
  EXPECT_THAT(mirror->why_not(), HasSubstr("/there holds step 10, which is damaged there"));
}

TEST_F(MirrorTest, AStepThatCannotBeReadThereIsNotCalledDamaged) {
  Save(10);
  ASSERT_OK(MakeDirs(files_, "/there/step-000000010"));
  ASSERT_OK(WriteDurably(files_, "/there/step-000000010/manifest.json", "no manifest"));
  files_.Plan({.op = FileOp::kReadAt, .path_part = "/there/step-000000010/manifest.json",
               .error_number = EIO, .lasting = true});
  const auto mirror = MirrorOf("j");
  mirror->Begin(1);
  AwaitFailure(*mirror);
  EXPECT_THAT(mirror->why_not(),
              HasSubstr("/there holds step 10, which could not be read there: "));
}

// A stop waits for the newest, and does not first wait for one that is kept for ever.
TEST_F(MirrorTest, WhatIsWaitedForComesFirst) {
  for (const uint64_t step : {10, 20}) Save(step);
  std::atomic<bool> has_new{false};
  files_.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kWriteAt,
               .path_part = "/there/step-000000010", .act = [&] {
                 while (!has_new) RealClock().SleepFor(std::chrono::milliseconds(1));
               }});
  const auto mirror = MirrorOf("j", {.keep_every = 10});
  mirror->Begin(1);
  ASSERT_TRUE(mirror->AwaitMirrored(20, kLong));
  while (mirror->under_way() != 10u) RealClock().SleepFor(std::chrono::milliseconds(1));
  Save(25);
  mirror->Prefer(20);   // is there
  mirror->Prefer(25);
  has_new = true;
  mirror->Wake();
  ASSERT_TRUE(mirror->AwaitMirrored(25, kLong));
  ASSERT_TRUE(mirror->AwaitMirrored(25, kLong, /*all=*/true));
  EXPECT_THAT(WholeSteps(files_, "/there"), ElementsAre(10, 20, 25));
}

TEST_F(MirrorTest, WithoutAPlaceItDoesNothing) {
  Mirror none(files_, RealClock(), {"/here", "", {}}, "j", "");
  EXPECT_FALSE(none.wanted());
  EXPECT_OK(none.Hold(1, [] {}));
  none.Begin(1);
  none.Wake();
  EXPECT_FALSE(none.AwaitMirrored(0, Duration(0)));
  EXPECT_THAT(WholeSteps(files_, "/there"), IsEmpty());
}

}  // namespace
}  // namespace keel
