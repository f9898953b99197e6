// Runs the real `keel` for tests, and makes checkpoints for it.
// Promises   what it prints and its exit code, as a user sees them; no terminal is involved.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/posix_files.h"
#include "tests/support/temp_dir.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {

struct Ran {
  int exit_code = -1;
  std::string out;  // stdout, then stderr
};

inline Ran RunShell(const std::string& command) {
  Ran ran;
  FILE* const pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    ran.out.append(buffer, got);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
  return ran;
}

// `arguments` go through the shell: paths of TempDir need no quotes.
inline Ran RunKeel(const std::string& arguments) {
  return RunShell(KEEL_BIN_DIR "/keel " + arguments);
}

// The JSON that a command prints, which must succeed in parsing.
inline Json KeelJson(const std::string& arguments, int exit_code = 0) {
  const Ran ran = RunKeel(arguments + " --json");
  EXPECT_EQ(ran.exit_code, exit_code) << ran.out;
  const auto json = ParseJson(ran.out);
  EXPECT_TRUE(json.ok()) << ran.out;
  return json.ok() ? *json : Json();
}

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
