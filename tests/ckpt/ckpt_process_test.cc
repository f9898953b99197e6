// Real processes on a real disk, with SIGKILL at every call.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "base/posix_files.h"
#include "ckpt/catalog.h"
#include "elastic/spawn.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

class CkptProcessTest : public testing::Test {
 protected:
  Result<ExitStatus> Run(std::vector<std::string> arguments) {
    ChildSpec spec;
    spec.argv = {KEEL_BIN_DIR "/ckpt_victim"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.environment = OwnEnvironment();
    WriteFile(folder_.File("out"), "");
    spec.out = Stream::File(folder_.File("out"));
    spec.err = spec.out;
    KEEL_TRY_ASSIGN(const Child child, Spawn(spec));
    return child.Wait(RealClock().Monotonic() + 600s);
  }
  std::string Output() { return ReadFile(folder_.File("out")); }

  // Loads the newest checkpoint and compares it with what the victim made for that step.
  uint64_t LoadNewest() {
    PosixFiles files;
    const auto newest = NewestComplete(files, root_);
    EXPECT_OK(newest);
    if (!newest.ok()) return 0;
    const TestState expected = TestState::Make(newest->step, 20'000);
    const auto checkpoint = Checkpoint::Open(files, newest->dir);
    EXPECT_OK(checkpoint);
    if (!checkpoint.ok()) return 0;
    TestState loaded = expected.Blank();
    EXPECT_OK(Restore(**checkpoint, loaded.Targets(), {}));
    EXPECT_EQ(loaded.bytes, expected.bytes);
    return newest->step;
  }

  TempDir folder_;
  std::string root_ = folder_.File("ckpts");
};

TEST_F(CkptProcessTest, KilledAtEveryCallTheNewestCheckpointLoadsWhole) {
  uint64_t step = 1;
  ASSERT_OK_AND_ASSIGN(const ExitStatus first, Run({"save", root_, "1", "0"}));
  ASSERT_TRUE(first.ok()) << Output();
  int kills = 0;
  for (int call = 1;; ++call) {
    const std::string next = std::to_string(step + 1);
    ASSERT_OK_AND_ASSIGN(const ExitStatus status, Run({"save", root_, next, std::to_string(call)}));
    if (status.ok()) break;
    ASSERT_TRUE(status.KilledBy(SIGKILL)) << status.Text() << Output();
    ++kills;
    const uint64_t loaded = LoadNewest();
    ASSERT_TRUE(loaded == step || loaded == step + 1) << "killed at call " << call;
    // The next save succeeds, the same step where that was not committed, and sweeps what is left.
    step = loaded + 1;
    ASSERT_OK_AND_ASSIGN(const ExitStatus again, Run({"save", root_, std::to_string(step), "0"}));
    ASSERT_TRUE(again.ok()) << "after a kill at call " << call << ": " << Output();
    ASSERT_EQ(LoadNewest(), step);
    PosixFiles files;
    ASSERT_OK_AND_ASSIGN(const auto left, files.List(root_));
    ASSERT_EQ(left.size(), 1u) << "after a kill at call " << call;
  }
  std::printf("killed at %d calls\n", kills);
  EXPECT_GE(kills, 40);
}

}  // namespace
}  // namespace keel
