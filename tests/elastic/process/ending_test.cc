// EndingOf(): of a process that is alive, one that is killed, one that exits, one that has much
// memory and threads, and one of which only the first thread has left.
#include "elastic/process/ending.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/clock.h"

namespace keel {
namespace {

constexpr Duration kHangLimit = std::chrono::seconds(60);

class Process {
 public:
  // Returns once `body` has written a byte to the descriptor that it is given; it ends only when it
  // is killed.
  explicit Process(const std::function<void(int up)>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      body(ends[1]);
      while (true) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
  }
  ~Process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  bool HasEnded() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

 private:
  pid_t pid_ = 0;
};

void Tell(int up) { EXPECT_EQ(write(up, "u", 1), 1); }

bool Until(const std::function<bool()>& is_so) {
  const TimePoint by = RealClock().Monotonic() + kHangLimit;
  while (!is_so()) {
    if (RealClock().Monotonic() > by) return false;
    RealClock().SleepFor(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(EndingOf, IsThatOfWhoIsKilledAndNothingOfWhoLives) {
  const Process process([](int up) { Tell(up); });
  EXPECT_EQ(EndingOf(process.pid()), std::nullopt);
  kill(process.pid(), SIGTERM);
  ASSERT_TRUE(Until([&] { return EndingOf(process.pid()).has_value(); }));
  EXPECT_EQ(EndingOf(process.pid()), ExitStatus::Killed(SIGTERM));
  EXPECT_TRUE(Until([&] { return process.HasEnded(); }));
  EXPECT_EQ(EndingOf(process.pid()), ExitStatus::Killed(SIGTERM));
}

TEST(EndingOf, IsTheCodeOfWhoExits) {
  const Process process([](int up) {
    Tell(up);
    _exit(79);
  });
  ASSERT_TRUE(Until([&] { return EndingOf(process.pid()).has_value(); }));
  EXPECT_EQ(EndingOf(process.pid()), ExitStatus::Exited(79));
}

TEST(EndingOf, IsThereWhileMuchMemoryIsFreed) {
  constexpr size_t kBytes = size_t{600} << 20;
  const Process process([](int up) {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    std::thread([] {
      while (true) pause();
    }).detach();
    if (memory != MAP_FAILED) Tell(up);
  });
  EXPECT_EQ(EndingOf(process.pid()), std::nullopt);
  kill(process.pid(), SIGKILL);
  ASSERT_TRUE(Until([&] { return EndingOf(process.pid()).has_value(); }));
  EXPECT_EQ(EndingOf(process.pid()), ExitStatus::Killed(SIGKILL));
  EXPECT_TRUE(Until([&] { return process.HasEnded(); }));
}

TEST(EndingOf, IsNothingWhereOnlyTheFirstThreadHasLeft) {
  const Process process([](int up) {
    std::thread([up] {
      RealClock().SleepFor(std::chrono::milliseconds(50));
      Tell(up);
      while (true) pause();
    }).detach();
    syscall(SYS_exit, 0);   // of this thread alone
  });
  EXPECT_EQ(EndingOf(process.pid()), std::nullopt);
}

}  // namespace
}  // namespace keel
