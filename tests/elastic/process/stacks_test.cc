// What can be seen of a process that really hangs, from outside and by its own answer.
#include "elastic/process/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <vector>

#include "elastic/process/stack_signal.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/ranks.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr bool kHasForeignThread = kUnderThreadSanitizer;

class Stacks : public ::testing::Test {
 protected:
  void Start(const std::string& argument) {
    auto started = Ranks::Start({.argv = {KEEL_BIN_DIR "/hanging_worker", argument}}, dir_);
    ASSERT_OK(started);
    ranks_ = *std::move(started);
    ASSERT_OK(ranks_->AwaitAll("up", 60s));
  }
  // Looks again and again until all its threads have come to where they hang.
  std::string TextWith(const std::vector<std::string>& parts) {
    const TimePoint deadline = RealClock().Monotonic() + 30s;
    for (;;) {
      const auto stacks = ReadStacks(ranks_->pid(0));
      EXPECT_OK(stacks);
      const std::string text = stacks.ok() ? StacksText(*stacks) : "";
      const bool is_there = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
        return text.find(part) != std::string::npos;
      });
      if (is_there || RealClock().Monotonic() > deadline) return text;
    }
  }

  TempDir dir_;
  std::unique_ptr<Ranks> ranks_;
};

TEST_F(Stacks, EachThreadIsNamedWithWhatItWaitsFor) {
  if (kHasForeignThread) {
    GTEST_SKIP() << "ThreadSanitizer adds a thread, and holds back signals in calls";
  }
  Start("silent");
  EXPECT_THAT(TextWith({"main-waits: sleeping", "stuck-reader: sleeping in read(", "futex"}),
              AllOf(HasSubstr("hanging_worker silent), 3 threads"),
                    HasSubstr("main-waits: sleeping"),
                    HasSubstr("stuck-reader: sleeping in read("), HasSubstr("= pipe:["),
                    HasSubstr("futex")));
}

TEST_F(Stacks, AStoppedProcessIsCalledSo) {
  Start("silent");
  ASSERT_OK(ranks_->Signal(0, SIGSTOP));
  const std::string stopped = "main-waits: stopped by a signal";
  EXPECT_THAT(TextWith({stopped}), HasSubstr(stopped));
}

TEST_F(Stacks, AProcessThatIsGoneIsAnError) {
  Start("silent");
  const pid_t pid = ranks_->pid(0);
  ASSERT_OK(ranks_->Signal(0, SIGKILL));
  ASSERT_OK(ranks_->Wait(0, 60s));
  ranks_.reset();
  const auto stacks = ReadStacks(pid);
  ASSERT_FALSE(stacks.ok());
  EXPECT_EQ(stacks.error().code, Code::kNotFound);
  EXPECT_FALSE(CatchesSignal(pid, StackSignal()));
}

TEST_F(Stacks, OnlyAProgramWithTheHandlerCatchesTheSignal) {
  Start("silent");
  EXPECT_FALSE(CatchesSignal(ranks_->pid(0), StackSignal()));
  EXPECT_FALSE(CatchesSignal(ranks_->pid(0), SIGKILL));
  Start("answers");
  EXPECT_TRUE(CatchesSignal(ranks_->pid(0), StackSignal()));
}

TEST_F(Stacks, AHangingProgramOfOursWritesTheStacksOfAllItsThreads) {
  if (kHasForeignThread) {
    GTEST_SKIP() << "ThreadSanitizer adds a thread, and holds back signals in calls";
  }
  Start("answers");
  TextWith({"rt_sigsuspend", "read(", "futex"});
  for (int time = 1; time <= 3; ++time) {
    ASSERT_OK(ranks_->Signal(0, StackSignal()));
    ASSERT_OK(ranks_->AwaitLine(0, "end of the stacks", 60s, time));
  }
  EXPECT_THAT(ranks_->Stderr(0),
              AllOf(HasSubstr("(main-waits)"), HasSubstr("(stuck-reader)"),
                    HasSubstr("did not answer"), HasSubstr("libc"), Not(HasSubstr("(deaf)"))));
  EXPECT_FALSE(ranks_->Wait(0, 0s).ok()) << "it goes on";
}

TEST(StackSignal, LeavesAHandlerOfSomebodyElseAlone) {
  struct sigaction before {};
  struct sigaction other {};
  other.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(StackSignal(), &other, &before), 0);
  EXPECT_FALSE(InstallStackDump());
  ASSERT_EQ(sigaction(StackSignal(), &before, nullptr), 0);
  EXPECT_TRUE(InstallStackDump());
  EXPECT_TRUE(InstallStackDump());
  ASSERT_EQ(sigaction(StackSignal(), &before, nullptr), 0);
}

TEST(SyscallName, NamesWhatProgramsWaitIn) {
  EXPECT_EQ(SyscallName(SYS_futex), "futex");
  EXPECT_TRUE(TakesDescriptor(SYS_recvmsg));
  EXPECT_FALSE(TakesDescriptor(SYS_futex));
  EXPECT_EQ(SyscallName(99'999), "system call 99999");
}

}  // namespace
}  // namespace keel
