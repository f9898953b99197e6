// Makes checkpoints for tests of the real `keel`.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/posix_files.h"
#include "tests/support/temp_dir.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/tools/run_keel.h"

namespace keel {

// A directory of checkpoints in a folder that goes with the test.
class KeelProgram : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/run"; }

  std::string SaveStep(const TestState& state, uint64_t step, const std::string& to = "",
                       uint32_t frame_bytes = 1024) {
    MemorySource source(state.Spans());
    const auto report =
        SaveCheckpoint(files_, PlanOf(state, to.empty() ? root() : to, step, step + 1, frame_bytes),
                       source, {}, 1'795'000'000'000'000'000);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? report->step_dir : "";
  }

  // The path of a step's only shard.
  std::string ShardOf(const std::string& step_dir) {
    const auto entries = files_.List(step_dir);
    for (const DirEntry& entry : *entries) {
      if (entry.name.ends_with(".keel")) return step_dir + "/" + entry.name;
    }
    return "";
  }

  void FlipByte(const std::string& path, uint64_t offset) {
    const auto file = files_.Open(path, {.write = true});
    ASSERT_OK(file);
    std::byte byte{};
    ASSERT_OK((*file)->ReadAt(offset, {&byte, 1}));
    byte ^= std::byte{1};
    ASSERT_OK((*file)->WriteAt(offset, {&byte, 1}));
  }

  const TempDir dir_;
  PosixFiles files_;
  TestState state_ = TestState::Make(1, 4000);
};

}  // namespace keel
