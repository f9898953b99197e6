// Killed at any call, with anything that was not synced kept, torn or lost: the newest committed
// checkpoint loads whole, and the next save succeeds.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "ckpt/catalog.h"
#include "ckpt/retention.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

constexpr int kMixes = Rounds(12, 2);
constexpr uint64_t kSeed = 20261121;
constexpr uint32_t kSmallFrames = 256;

// One thread of each kind, so that the calls come in the same order each time.
const WriteOptions kWrite{.compress_threads = 1, .write_threads = 1};

struct States {
  TestState old_state = TestState::Make(1, 300);
  TestState new_state = TestState::Make(2, 300);
};

// Two writers, then the commit, then retention that removes the older step.
Status SaveStep(Files& files, const TestState& state, uint64_t step) {
  MemorySource source(state.Spans());
  SavePlan plan = PlanOf(state, "/c", step, step, kSmallFrames);
  plan.parts = 2;
  KEEL_TRY_ASSIGN(const auto first, Save::Begin(files, plan));
  plan.part = 1;
  KEEL_TRY_ASSIGN(const auto second, Save::Begin(files, plan));
  KEEL_TRY(first->WriteShard(source, kWrite));
  KEEL_TRY(second->WriteShard(source, kWrite));
  KEEL_TRY(first->Commit(0));
  KEEL_TRY(ApplyRetention(files, "/c", {.keep_last = 1}));
  return Ok();
}

// The step of the newest checkpoint, once it was loaded and compared; 0 where that fails.
uint64_t LoadNewest(Files& files, const States& states, std::string* why) {
  const auto newest = NewestComplete(files, "/c");
  if (!newest.ok()) return *why = newest.error().message, 0;
  const TestState& expected = newest->step == 100 ? states.old_state : states.new_state;
  const auto checkpoint = Checkpoint::Open(files, newest->dir);
  if (!checkpoint.ok()) return *why = checkpoint.error().message, 0;
  TestState loaded = expected.Blank();
  RestoreOptions options;
  options.threads = 1;
  const auto restored = Restore(**checkpoint, loaded.Targets(), options);
  if (!restored.ok()) return *why = restored.error().message, 0;
  if (loaded.bytes != expected.bytes) return *why = "other bits", 0;
  return newest->step;
}

struct Tally {
  int points = 0;
  int disks = 0;
};

void JudgeDisks(const MemoryFiles& memory, const States& states, bool finished, int point,
                Tally* tally) {
  for (const auto& disk : memory.PossibleDisks(kMixes, kSeed + point)) {
    ++tally->disks;
    std::string why;
    const uint64_t step = LoadNewest(*disk, states, &why);
    ASSERT_TRUE(step == 200 || (step == 100 && !finished)) << "call " << point << ": " << why;
    // What is left behind does not stand in the way of the same step again, nor of the next.
    if (step == 100) {
      SavePlan plan = PlanOf(states.new_state, "/c", 200, 999, kSmallFrames);
      MemorySource source(states.new_state.Spans());
      ASSERT_OK(SaveCheckpoint(*disk, plan, source, kWrite, 0)) << "call " << point;
      ASSERT_EQ(LoadNewest(*disk, states, &why), 200u) << why;
    }
    ASSERT_OK(SaveStep(*disk, states.new_state, 300)) << "call " << point;
    ASSERT_EQ(LoadNewest(*disk, states, &why), 300u) << why;
    ASSERT_OK_AND_ASSIGN(const auto left, disk->List("/c"));
    ASSERT_EQ(left.size(), 1u) << "call " << point << ": retention left more than step 300";
  }
}

TEST(Crash, AtEveryCallTheNewestCommittedCheckpointLoadsWhole) {
  const States states;
  Tally tally;
  for (int point = 1;; point += kPointStride) {
    MemoryFiles memory;
    ASSERT_OK(SaveStep(memory, states.old_state, 100));
    FaultyFiles faulty(memory);
    faulty.Plan({.kind = Fault::Kind::kCrash, .at_call = point, .written_bytes = 700});
    const Status status = SaveStep(faulty, states.new_state, 200);
    const bool crashed = faulty.strikes() > 0;
    ASSERT_TRUE(crashed || status.ok()) << status.error().message;
    JudgeDisks(memory, states, status.ok(), point, &tally);
    if (HasFatalFailure()) return;
    if (!crashed) break;
    ++tally.points;
  }
  std::printf("%d points, %d possible disks\n", tally.points, tally.disks);
  EXPECT_GE(tally.points, 40 / kPointStride);
  EXPECT_GT(tally.disks, 80 * kMixes / kPointStride);
}

// The same, but calls fail one at a time and the process lives on: what it reports as saved is
// saved, older checkpoints stay, and no file of the failed attempt is left.
TEST(Faults, AnyFailingCallLeavesOlderCheckpointsAndNoFiles) {
  const States states;
  int failures = 0;
  for (const int error_number : {EIO, ENOSPC, EDQUOT, EROFS, ENOENT}) {
    for (int point = 1;; ++point) {
      MemoryFiles memory;
      ASSERT_OK(SaveStep(memory, states.old_state, 100));
      FaultyFiles faulty(memory);
      faulty.Plan({.at_call = point, .error_number = error_number});
      MemorySource source(states.new_state.Spans());
      const auto saved =
          SaveCheckpoint(faulty, PlanOf(states.new_state, "/c", 200, 200, kSmallFrames), source,
                         kWrite, 0);
      if (faulty.strikes() == 0) break;
      std::string why;
      const uint64_t step = LoadNewest(memory, states, &why);
      ASSERT_TRUE(step == 200 || (step == 100 && !saved.ok())) << point << ": " << why;
      if (saved.ok()) continue;  // a clean-up that may fail
      ++failures;
      EXPECT_NE(saved.error().message.find("saving step 200"), std::string::npos)
          << saved.error().message;
      EXPECT_NE(saved.error().message.find("/c"), std::string::npos) << saved.error().message;
      if (step != 100) continue;
      const auto left = memory.List("/c/step-000000200");
      EXPECT_TRUE(!left.ok() || left->empty()) << point << ": " << left->front().name;
    }
  }
  EXPECT_GT(failures, 50);
}

TEST(Faults, AFullDiskIsNamedAndLeavesRoomAsBefore) {
  const TestState state = TestState::Make(3, 100'000);
  MemoryFiles files(MemoryFiles::Options{.capacity_bytes = 100'000});
  ASSERT_OK(files.MakeDir("/c"));
  ASSERT_OK_AND_ASSIGN(const uint64_t before, files.FreeBytes("/c"));
  MemorySource source(state.Spans());
  const auto saved = SaveCheckpoint(files, PlanOf(state, "/c", 1, 1), source, {}, 0);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code, Code::kNoSpace) << saved.error().message;
  ASSERT_OK_AND_ASSIGN(const uint64_t after, files.FreeBytes("/c"));
  EXPECT_EQ(before, after);
  ASSERT_OK_AND_ASSIGN(const auto left, files.List("/c"));
  EXPECT_TRUE(left.empty());
}

TEST(Faults, TwoSaversOfOneStepLeaveTheFirstCommitsCheckpoint) {
  const States states;
  MemoryFiles files;
  MemorySource mine(states.old_state.Spans());
  MemorySource theirs(states.new_state.Spans());
  ASSERT_OK_AND_ASSIGN(const auto a,
                       Save::Begin(files, PlanOf(states.old_state, "/c", 100, 1, kSmallFrames)));
  ASSERT_OK_AND_ASSIGN(const auto b,
                       Save::Begin(files, PlanOf(states.new_state, "/c", 100, 2, kSmallFrames)));
  ASSERT_OK(a->WriteShard(mine, kWrite));
  ASSERT_OK(b->WriteShard(theirs, kWrite));
  ASSERT_OK(a->Commit(0));
  const auto second = b->Commit(0);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::kExists) << second.error().message;
  std::string why;
  EXPECT_EQ(LoadNewest(files, states, &why), 100u) << why;
}

TEST(Faults, RetentionLeavesALiveSaveAlone) {
  const States states;
  MemoryFiles files;
  MemorySource source(states.new_state.Spans());
  ASSERT_OK_AND_ASSIGN(const auto slow,
                       Save::Begin(files, PlanOf(states.new_state, "/c", 150, 1, kSmallFrames)));
  ASSERT_OK(slow->WriteShard(source, kWrite));
  ASSERT_OK(SaveStep(files, states.new_state, 200));
  ASSERT_OK(ApplyRetention(files, "/c", {.partial = RetentionPolicy::Partial::kRemoveAll}));
  ASSERT_OK(slow->Commit(0));
  ASSERT_OK_AND_ASSIGN(const StepEntry entry, LookAtStep(files, slow->step_dir()));
  EXPECT_EQ(entry.state, StepState::kComplete) << entry.reason;
}

TEST(Faults, ADirectoryThatVanishesIsAnError) {
  const States states;
  MemoryFiles files;
  MemorySource source(states.new_state.Spans());
  ASSERT_OK_AND_ASSIGN(const auto save,
                       Save::Begin(files, PlanOf(states.new_state, "/c", 1, 1, kSmallFrames)));
  ASSERT_OK(save->WriteShard(source, kWrite));
  ASSERT_OK(files.Rename("/c", "/elsewhere"));
  const auto committed = save->Commit(0);
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().code, Code::kNotFound) << committed.error().message;
}

}  // namespace
}  // namespace keel
