// What was saved comes back bit for bit, whoever writes and whoever reads.
#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "base/posix_files.h"
#include "ckpt/save.h"
#include "tests/base/temp_dir.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

TEST(SaveAndRestore, GiveTheSameBitsOnTheRealDisk) {
  const TempDir dir;
  PosixFiles files;
  TestState state = TestState::Make(1, 3'000'000);
  MemorySource source(state.Spans());
  const SavePlan plan = PlanOf(state, dir.path() + "/ckpts", 1200, 7);
  ASSERT_OK_AND_ASSIGN(const CommitReport report,
                       SaveCheckpoint(files, plan, source, {.write_threads = 2}, 123));
  EXPECT_LT(report.stored_bytes, report.content_bytes);

  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files, report.step_dir));
  EXPECT_EQ(checkpoint->manifest().description.metadata, plan.description.metadata);
  EXPECT_EQ(checkpoint->manifest().saved_at_ns, 123);
  TestState loaded = state.Blank();
  ASSERT_OK_AND_ASSIGN(const RestoreReport restored, Restore(*checkpoint, loaded.Targets(), {}));
  EXPECT_EQ(loaded.bytes, state.bytes);
  EXPECT_EQ(restored.bytes, report.content_bytes);
  EXPECT_OK(CheckRestored(*checkpoint, loaded.Targets()));
}

// Every number of writers is read back by every number of readers.
TEST(SaveAndRestore, AnyNumberOfWritersAndReadersGoTogether) {
  TestState state = TestState::Make(2, 6000);
  for (uint32_t writers = 1; writers <= 8; ++writers) {
    MemoryFiles files;
    ASSERT_OK(files.MakeDir("/c"));
    SavePlan plan = PlanOf(state, "/c", 5, writers, 1024);
    plan.parts = writers;
    std::vector<std::unique_ptr<Save>> saves;
    MemorySource source(state.Spans());
    for (plan.part = 0; plan.part < writers; ++plan.part) {
      ASSERT_OK_AND_ASSIGN(auto save, Save::Begin(files, plan));
      ASSERT_OK(save->WriteShard(source, {}));
      saves.push_back(std::move(save));
    }
    ASSERT_OK(saves[0]->Commit(0));
    ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files, saves[0]->step_dir()));
    for (uint32_t readers = 1; readers <= 8; ++readers) {
      TestState loaded = state.Blank();
      uint64_t bytes = 0;
      for (uint32_t part = 0; part < readers; ++part) {
        ASSERT_OK_AND_ASSIGN(
            const RestoreReport report,
            Restore(*checkpoint, loaded.Targets(), {.part = part, .parts = readers}));
        bytes += report.bytes;
      }
      EXPECT_EQ(bytes, checkpoint->layout().tensor_bytes());
      EXPECT_EQ(loaded.bytes, state.bytes) << writers << " writers, " << readers << " readers";
      EXPECT_OK(CheckRestored(*checkpoint, loaded.Targets()));
    }
  }
}

}  // namespace
}  // namespace keel
