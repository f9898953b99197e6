// Retention beside a save that begins, beside another retention, and beside readers: at whichever
// call of the one the whole of the other comes, neither fails and nothing that lives is lost.
#include <gtest/gtest.h>

#include <functional>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "ckpt/copy.h"
#include "ckpt/names.h"
#include "ckpt/removal.h"
#include "ckpt/retention.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

const RetentionPolicy kAll{.keep_last = 1, .partial = RetentionPolicy::Partial::kRemoveAll};
// One thread of each kind, so that the calls come in the same order each time.
const WriteOptions kWrite{.compress_threads = 1, .write_threads = 1};

// Two writers of one attempt.
struct Writers {
  std::unique_ptr<Save> first, second;
};

class GcBesideSave : public testing::Test {
 protected:
  SavePlan Plan(uint64_t step, uint64_t attempt) const {
    SavePlan plan = PlanOf(state_, "/c", step, attempt, 256);
    plan.parts = 2;
    return plan;
  }

  Result<Writers> Begin(Files& files, uint64_t step, uint64_t attempt) const {
    SavePlan plan = Plan(step, attempt);
    Writers writers;
    KEEL_TRY_ASSIGN(writers.first, Save::Begin(files, plan));
    plan.part = 1;
    KEEL_TRY_ASSIGN(writers.second, Save::Begin(files, plan));
    return writers;
  }

  Status Finish(const Writers& writers) const {
    MemorySource source(state_.Spans());
    KEEL_TRY(writers.first->WriteShard(source, kWrite));
    KEEL_TRY(writers.second->WriteShard(source, kWrite));
    KEEL_TRY(writers.first->Commit(0));
    return Ok();
  }

  Status SaveStep(Files& files, uint64_t step, uint64_t attempt) const {
    KEEL_TRY_ASSIGN(const Writers writers, Begin(files, step, attempt));
    return Finish(writers);
  }

  // What a save leaves whose process was killed after it wrote its shard.
  void LeaveDeadAttempt(Files& files, uint64_t step) const {
    const std::string dir = JoinPath("/c", StepDirName(step));
    const ShardName name{"00000000deadbeef", 0, 1};
    ASSERT_OK(MakeDirs(files, dir));
    ASSERT_OK(WriteDurably(files, JoinPath(dir, ShardFileName(name)), "half"));
    ASSERT_OK(WriteDurably(files, JoinPath(dir, ShardLockName(name)), "dead"));
  }

  // Calls `run` with `act` at its first call, then at its second, and so on until it makes fewer;
  // `judge` looks at each disk. Returns at how many calls there was something to do.
  int AtEveryCall(const std::function<void(MemoryFiles&)>& prepare,
                  const std::function<Status(Files&)>& run,
                  const std::function<Status(MemoryFiles&)>& act,
                  const std::function<void(MemoryFiles&, int)>& judge) const {
    for (int call = 1;; call += kPointStride) {
      MemoryFiles memory;
      prepare(memory);
      Status acted = Ok();
      FaultyFiles faulty(memory);
      faulty.Plan({.kind = Fault::Kind::kAct, .at_call = call, .act = [&] {
                     acted = act(memory);
                   }});
      const Status ran = run(faulty);
      EXPECT_TRUE(ran.ok()) << "call " << call << ": " << ran.error().message;
      EXPECT_TRUE(acted.ok()) << "call " << call << ": " << acted.error().message;
      judge(memory, call);
      if (testing::Test::HasFailure() || faulty.strikes() == 0) return call - 1;
    }
  }

  static Status Gc(Files& files) {
    const auto report = ApplyRetention(files, "/c", kAll);
    return report.ok() ? Ok() : Status(report.error());
  }

  static void ExpectComplete(Files& files, uint64_t step, int call) {
    const auto entry = LookAtStep(files, JoinPath("/c", StepDirName(step)));
    ASSERT_TRUE(entry.ok()) << "call " << call << ": " << entry.error().message;
    EXPECT_EQ(entry->state, StepState::kComplete) << "call " << call << ": " << entry->reason;
  }

  const TestState state_ = TestState::Make(1, 200);
};

TEST_F(GcBesideSave, TakesNothingAwayAtAnyCallOfASave) {
  for (const bool begins_among_dead : {false, true}) {
    const int calls = AtEveryCall(
        [&](MemoryFiles& files) {
          ASSERT_OK(SaveStep(files, 10, 1));
          if (begins_among_dead) LeaveDeadAttempt(files, 20);
        },
        [&](Files& files) { return SaveStep(files, 20, 2); }, Gc,
        [&](MemoryFiles& files, int call) { ExpectComplete(files, 20, call); });
    EXPECT_GE(calls, 20);
  }
}

TEST_F(GcBesideSave, LetsASaveBeginAtAnyOfItsCalls) {
  for (const bool begins_among_dead : {false, true}) {
    Writers writers;
    AtEveryCall(
        [&](MemoryFiles& files) {
          writers = {};
          ASSERT_OK(SaveStep(files, 10, 1));
          ASSERT_OK(files.MakeDir(JoinPath("/c", StepDirName(20))));
          if (begins_among_dead) LeaveDeadAttempt(files, 20);
        },
        Gc,
        [&](MemoryFiles& files) -> Status {
          KEEL_TRY_ASSIGN(writers, Begin(files, 20, 2));
          return Ok();
        },
        [&](MemoryFiles& files, int call) {
          if (writers.first == nullptr) return;  // it made fewer calls
          const Status finished = Finish(writers);
          EXPECT_TRUE(finished.ok()) << "call " << call << ": " << finished.error().message;
          writers = {};
          ExpectComplete(files, 20, call);
        });
  }
}

TEST_F(GcBesideSave, LetsAWholeSaveHappenAtAnyOfItsCalls) {
  AtEveryCall(
      [&](MemoryFiles& files) {
        ASSERT_OK(SaveStep(files, 10, 1));
        LeaveDeadAttempt(files, 20);
      },
      Gc, [&](MemoryFiles& files) { return SaveStep(files, 20, 2); },
      [&](MemoryFiles& files, int call) {
        const bool saved = *Exists(files, JoinPath("/c", StepDirName(20)));
        if (saved) ExpectComplete(files, 20, call);
      });
}

TEST_F(GcBesideSave, WhatAnotherOneRemovedFirstIsNoFailure) {
  const int calls = AtEveryCall(
      [&](MemoryFiles& files) {
        for (const uint64_t step : {10, 20, 30, 40}) ASSERT_OK(SaveStep(files, step, step));
        LeaveDeadAttempt(files, 15);
        LeaveDeadAttempt(files, 40);
      },
      Gc, Gc,
      [&](MemoryFiles& files, int call) {
        const auto steps = ListSteps(files, "/c");
        ASSERT_OK(steps);
        ASSERT_EQ(steps->size(), 1u) << "call " << call;
        ExpectComplete(files, 40, call);
        EXPECT_EQ(files.List(steps->front().dir)->size(), 3u)
            << "call " << call << ": more than the manifest and two shards";
      });
  EXPECT_GE(calls, 20);
}

TEST_F(GcBesideSave, MakesRoomOnADiskThatTakesNoNewFile) {
  MemoryFiles memory;
  for (const uint64_t step : {10, 20}) ASSERT_OK(SaveStep(memory, step, step));
  FaultyFiles full(memory);
  full.Plan({.op = FileOp::kLock,
             .path_part = std::string(kCommitLockName),
             .error_number = ENOSPC,
             .lasting = true});
  ASSERT_OK(Gc(full));
  EXPECT_GT(full.strikes(), 0);
  EXPECT_FALSE(*Exists(memory, JoinPath("/c", StepDirName(10))));
}

TEST_F(GcBesideSave, AStepIsNeverCalledDamagedWhileItIsRemoved) {
  AtEveryCall(
      [&](MemoryFiles& files) {
        for (const uint64_t step : {10, 20, 30}) ASSERT_OK(SaveStep(files, step, step));
      },
      [&](Files& files) -> Status {
        KEEL_TRY_ASSIGN(const auto steps, ListSteps(files, "/c"));
        for (const StepEntry& entry : steps) {
          EXPECT_NE(entry.state, StepState::kDamaged) << entry.dir << ": " << entry.reason;
        }
        EXPECT_EQ(steps.back().step, 30u);
        return Ok();
      },
      Gc, [](MemoryFiles&, int) {});
  // And the other way round: somebody looks at every call of the removal.
  AtEveryCall(
      [&](MemoryFiles& files) {
        for (const uint64_t step : {10, 20, 30}) ASSERT_OK(SaveStep(files, step, step));
      },
      Gc,
      [&](MemoryFiles& files) -> Status {
        KEEL_TRY_ASSIGN(const auto steps, ListSteps(files, "/c"));
        for (const StepEntry& entry : steps) {
          EXPECT_NE(entry.state, StepState::kDamaged) << entry.dir << ": " << entry.reason;
        }
        return Ok();
      },
      [](MemoryFiles&, int) {});
}

// A job that keeps one checkpoint: the only one there was goes, the next one has come.
TEST_F(GcBesideSave, TheNewestIsFoundWhileANewerOneTakesItsPlace) {
  AtEveryCall([&](MemoryFiles& files) { ASSERT_OK(SaveStep(files, 10, 1)); },
              [&](Files& files) -> Status {
                KEEL_TRY(NewestComplete(files, "/c"));
                return Ok();
              },
              [&](MemoryFiles& files) -> Status {
                KEEL_TRY(SaveStep(files, 20, 2));
                return Gc(files);
              },
              [](MemoryFiles&, int) {});
}

TEST_F(GcBesideSave, TheNewestIsFoundWhileTheOneBeforeItIsTakenApart) {
  AtEveryCall([&](MemoryFiles& files) { ASSERT_OK(SaveStep(files, 10, 1)); },
              [&](Files& files) -> Status {
                KEEL_TRY(NewestComplete(files, "/c"));
                return Ok();
              },
              [&](MemoryFiles& files) -> Status {
                KEEL_TRY(SaveStep(files, 20, 2));
                return files.Remove(JoinPath(JoinPath("/c", StepDirName(10)), kManifestName));
              },
              [](MemoryFiles&, int) {});
}

TEST_F(GcBesideSave, TheNewestIsOpenedWhileANewerOneTakesItsPlace) {
  AtEveryCall([&](MemoryFiles& files) { ASSERT_OK(SaveStep(files, 10, 1)); },
              [&](Files& files) -> Status {
                KEEL_TRY(OpenCheckpoint(files, "/c"));
                return Ok();
              },
              [&](MemoryFiles& files) -> Status {
                KEEL_TRY(SaveStep(files, 20, 2));
                return Gc(files);
              },
              [](MemoryFiles&, int) {});
}

// A copy has the attempt of what it copies, so its shards have the names of those that are removed.
class GcBesideCopy : public GcBesideSave {
 protected:
  // "/from" is copied: what is there has the same attempt as what SaveStep() puts into "/c".
  static Status CopyStep(Files& files) {
    KEEL_TRY_ASSIGN(const auto from, OpenCheckpoint(files, "/from"));
    const auto copied = CopyCheckpoint(files, *from, "/c", nullptr);
    // It may be there still, or be removed just now.
    return copied.ok() || copied.error().code == Code::kExists ? Ok() : Status(copied.error());
  }

  void MakeSource(MemoryFiles& files) const {
    ASSERT_OK(SaveStep(files, 20, 2));
    ASSERT_OK(files.Rename("/c", "/from"));
  }

  void ExpectNoneHalfGone(MemoryFiles& files, int call) const {
    const std::string dir = JoinPath("/c", StepDirName(20));
    if (*Exists(files, JoinPath(dir, kManifestName))) ExpectComplete(files, 20, call);
    if (!*Exists(files, dir)) return;
    EXPECT_EQ(files.List(dir)->size(), 3u) << "call " << call << ": locks, or too few shards";
  }
};

TEST_F(GcBesideCopy, LeavesACopyThatTakesTheNamesOfADeadOne) {
  int copied = 0;
  AtEveryCall(
      [&](MemoryFiles& files) {
        MakeSource(files);
        ASSERT_OK(SaveStep(files, 10, 1));
        const std::string dir = JoinPath("/c", StepDirName(20)), attempt = Plan(20, 2).attempt;
        ASSERT_OK(MakeDirs(files, dir));
        for (const uint32_t part : {0u, 1u}) {
          const ShardName shard{attempt, part, 2};
          ASSERT_OK(WriteDurably(files, JoinPath(dir, ShardFileName(shard)), "half"));
          ASSERT_OK(WriteDurably(files, JoinPath(dir, ShardLockName(shard)), "dead"));
        }
      },
      Gc, CopyStep,
      [&](MemoryFiles& files, int call) {
        ExpectNoneHalfGone(files, call);
        copied += *Exists(files, JoinPath(JoinPath("/c", StepDirName(20)), kManifestName));
      });
  EXPECT_GE(copied, 10);
}

TEST_F(GcBesideCopy, LeavesACopyOfWhatItRemovesAsOld) {
  AtEveryCall(
      [&](MemoryFiles& files) {
        MakeSource(files);
        ASSERT_OK(SaveStep(files, 20, 2));
        ASSERT_OK(SaveStep(files, 30, 3));
      },
      Gc, CopyStep, [&](MemoryFiles& files, int call) { ExpectNoneHalfGone(files, call); });
}

TEST_F(GcBesideCopy, LeavesACopyThatTakesThePlaceOfWhatIsSwept) {
  AtEveryCall(
      [&](MemoryFiles& files) {
        MakeSource(files);
        const ShardName dead{Plan(20, 2).attempt, 0, 2};
        ASSERT_OK(SaveStep(files, 20, 4));
        ASSERT_OK(WriteDurably(files, JoinPath(JoinPath("/c", StepDirName(20)),
                                               ShardFileName(dead)), "half"));
      },
      Gc,
      [&](MemoryFiles& files) -> Status {
        const std::string dir = JoinPath("/c", StepDirName(20));
        KEEL_TRY_ASSIGN(const StepEntry entry, LookAtStep(files, dir));
        KEEL_TRY(RemoveCheckpoint(files, entry));
        return CopyStep(files);
      },
      [&](MemoryFiles& files, int call) { ExpectComplete(files, 20, call); });
}

TEST_F(GcBesideCopy, ALookAtALockIsNotTakenForAnotherCopy) {
  MemoryFiles memory;
  MakeSource(memory);
  const std::string dir = JoinPath("/c", StepDirName(20));
  const std::string first = JoinPath(dir, ShardLockName({Plan(20, 2).attempt, 0, 2}));
  ASSERT_OK(MakeDirs(memory, dir));
  ASSERT_OK_AND_ASSIGN(auto look, memory.Lock(first, "looks"));
  FaultyFiles faulty(memory);
  faulty.Plan({.kind = Fault::Kind::kAct,
               .at_call = 2,
               .op = FileOp::kLock,
               .path_part = first,
               .act = [&] { look.reset(); }});
  ASSERT_OK(CopyStep(faulty));
  EXPECT_EQ(faulty.strikes(), 1);
  ExpectComplete(memory, 20, 0);
  ExpectNoneHalfGone(memory, 0);
}

}  // namespace
}  // namespace keel
