// Real processes on a real disk: SIGKILL at every call, two at a time, a disk that is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "base/posix_files.h"
#include "ckpt/catalog.h"
#include "elastic/process/spawn.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/harness/syscall_killer.h"
#include "tests/support/file_text.h"
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

  // After a kill while step + 1 was being saved over `step`: the newest checkpoint is whole, and
  // the next save succeeds and sweeps what is left. Gives the newest step.
  uint64_t JudgeAfterKill(uint64_t step) {
    const uint64_t loaded = LoadNewest();
    EXPECT_TRUE(loaded == step || loaded == step + 1) << loaded;
    const std::string next = std::to_string(loaded + 1);
    const auto again = Run({"save", root_, next, "0"});
    EXPECT_TRUE(again.ok() && again->ok()) << Output();
    EXPECT_EQ(LoadNewest(), loaded + 1);
    PosixFiles files;
    const auto left = files.List(root_);
    EXPECT_TRUE(left.ok() && left->size() == 1) << "retention left more than one step";
    return loaded + 1;
  }

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
  for (int call = 1;; call += kPointStride) {
    const std::string next = std::to_string(step + 1);
    ASSERT_OK_AND_ASSIGN(const ExitStatus status, Run({"save", root_, next, std::to_string(call)}));
    if (status.ok()) break;
    ASSERT_TRUE(status.KilledBy(SIGKILL)) << status.Text() << Output();
    ++kills;
    step = JudgeAfterKill(step);
    ASSERT_FALSE(HasFailure()) << "killed at call " << call;
  }
  std::printf("killed at %d calls\n", kills);
  EXPECT_GE(kills, 40 / kPointStride);
}

TEST_F(CkptProcessTest, KilledAtEverySystemCallTheNewestCheckpointLoadsWhole) {
  if (kUnderSanitizer) {
    GTEST_SKIP() << "sanitized programs make calls of their own and cannot all be traced";
  }
  uint64_t step = 1;
  ASSERT_OK_AND_ASSIGN(const ExitStatus first, Run({"save", root_, "1", "0"}));
  ASSERT_TRUE(first.ok()) << Output();
  int kills = 0;
  for (int call = 1;; ++call) {
    const std::string attempt = std::to_string(1'000'000 + call);  // there are not so many calls
    const auto end = RunKilledAtSyscall(
        {KEEL_BIN_DIR "/ckpt_victim", "save", root_, std::to_string(step + 1), attempt}, call);
    if (!end.ok()) GTEST_SKIP() << "no tracing on this machine: " << end.error().message;
    if (end->status.ok()) break;
    ASSERT_TRUE(end->status.KilledBy(SIGKILL)) << end->status.Text();
    ++kills;
    step = JudgeAfterKill(step);
    ASSERT_FALSE(HasFailure()) << "killed at system call " << call;
  }
  std::printf("killed at %d system calls\n", kills);
  EXPECT_GE(kills, 100);
}

TEST_F(CkptProcessTest, TwoSaversOfTheSameStepsDoNotDamageEachOther) {
  for (uint64_t step = 1; step <= 60; ++step) {
    std::vector<Child> children;
    for (const char* attempt : {"0", "100000"}) {  // which also is a call never reached
      ChildSpec spec;
      spec.argv = {KEEL_BIN_DIR "/ckpt_victim", "save", root_, std::to_string(step), attempt};
      spec.environment = OwnEnvironment();
      WriteFile(folder_.File(attempt), "");
      spec.out = Stream::File(folder_.File(attempt));
      spec.err = spec.out;
      ASSERT_OK_AND_ASSIGN(Child child, Spawn(spec));
      children.push_back(std::move(child));
    }
    int saved = 0;
    for (Child& child : children) {
      ASSERT_OK_AND_ASSIGN(const ExitStatus end, child.Wait(RealClock().Monotonic() + 600s));
      if (end.ok()) ++saved;
    }
    const std::string told = ReadFile(folder_.File("0")) + ReadFile(folder_.File("100000"));
    ASSERT_EQ(saved, 1) << "step " << step << ": " << told;
    // What the one that came second says.
    EXPECT_THAT(told,
                testing::AnyOf(testing::HasSubstr("committed"), testing::HasSubstr("held by")));
    ASSERT_EQ(LoadNewest(), step) << told;
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(CkptProcessTest, AFullDiskAndOneThatTurnsReadOnlyLeaveTheOlderCheckpoint) {
  ASSERT_OK(PosixFiles().MakeDir(root_));
  ASSERT_OK_AND_ASSIGN(const ExitStatus end, Run({"full", root_, "0", "0"}));
  if (end == ExitStatus::Exited(77)) GTEST_SKIP() << "no mounts on this machine: " << Output();
  EXPECT_TRUE(end.ok()) << end.Text() << "\n" << Output();
  std::printf("%s", Output().c_str());
}

}  // namespace
}  // namespace keel
