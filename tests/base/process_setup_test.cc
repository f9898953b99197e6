// What the process settings promise. Each test leaves the process as it found it.
#include "base/process_setup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

class Sigpipe : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(sigaction(SIGPIPE, nullptr, &before_), 0); }
  void TearDown() override { ASSERT_EQ(sigaction(SIGPIPE, &before_, nullptr), 0); }

  static void Note(int) {}

  struct sigaction before_ {};
};

TEST_F(Sigpipe, ABrokenPipeIsAnErrorAndNoDeath) {
  ASSERT_NE(signal(SIGPIPE, SIG_DFL), SIG_ERR);
  IgnoreSigpipe();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST_F(Sigpipe, AHandlerOfSomebodyElseIsLeftAlone) {
  ASSERT_NE(signal(SIGPIPE, Note), SIG_ERR);
  IgnoreSigpipe();
  struct sigaction after {};
  ASSERT_EQ(sigaction(SIGPIPE, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, Note);
}

class FileLimit : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  void TearDown() override { ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

  void SetSoft(rlim_t soft) {
    const rlimit wanted{soft, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &wanted), 0);
  }
  static rlim_t Soft() {
    rlimit now{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
    return now.rlim_cur;
  }

  rlimit before_{};
};

TEST_F(FileLimit, IsRaisedToTheHardLimitOrToEnough) {
  SetSoft(100);
  const Result<uint64_t> raised = RaiseFileLimit();
  ASSERT_TRUE(raised.ok()) << raised.error().message;
  EXPECT_EQ(*raised, std::min<rlim_t>(before_.rlim_max, 65536));
  EXPECT_EQ(Soft(), *raised);
}

TEST_F(FileLimit, IsNeverLowered) {
  SetSoft(before_.rlim_max);
  ASSERT_TRUE(RaiseFileLimit().ok());
  EXPECT_EQ(Soft(), before_.rlim_max);
}

// All three are put back behind each case.
class Streams : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int stream = 0; stream < 3; ++stream) {
      kept_[stream] = fcntl(stream, F_DUPFD_CLOEXEC, 100);
      ASSERT_GE(kept_[stream], 0);
    }
  }
  void TearDown() override {
    Restore();
    for (const int kept : kept_) close(kept);
  }
  void Restore() {
    for (int stream = 0; stream < 3; ++stream) dup2(kept_[stream], stream);
  }
  static bool IsNowhere(int stream) {
    struct stat is {}, nowhere {};
    return fstat(stream, &is) == 0 && stat("/dev/null", &nowhere) == 0 &&
           is.st_rdev == nowhere.st_rdev && S_ISCHR(is.st_mode);
  }

  int kept_[3] = {};
};

TEST_F(Streams, ThoseThatAreClosedLeadNowhereAndTheOthersWhereTheyLed) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  for (int closed = 0; closed < 8; ++closed) {
    for (int stream = 0; stream < 3; ++stream) {
      dup2(ends[1], stream);
      if ((closed >> stream & 1) != 0) close(stream);
    }
    const Status opened = OpenClosedStreams();
    bool as_wanted[3];
    for (int stream = 0; stream < 3; ++stream) {
      as_wanted[stream] = IsNowhere(stream) == ((closed >> stream & 1) != 0) &&
                          fcntl(stream, F_GETFD) == 0;
    }
    Restore();
    EXPECT_TRUE(opened.ok()) << closed;
    for (const bool is_so : as_wanted) EXPECT_TRUE(is_so) << closed;
  }
  close(ends[0]);
  close(ends[1]);
}

// How often the kernel gave this process a page, from one call of `work` to the end of another.
long PagesOf(const std::function<void()>& work) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  work();
  getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

// In a process of its own, which then has malloc set up so.
TEST(FreedMemory, IsThereForWhoNeedsAsMuchAgain) {
  constexpr size_t kBytes = 20 << 20;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for (const char* name : {"GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",
                             "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"}) {
      unsetenv(name);
    }
    KeepFreedMemory();
    const long pages = static_cast<long>(kBytes) / sysconf(_SC_PAGESIZE);
    const auto touch = [] {
      char* const bytes = static_cast<char*>(std::malloc(kBytes));
      for (size_t at = 0; at < kBytes; at += 512) static_cast<volatile char*>(bytes)[at] = 1;
      std::free(bytes);
    };
    const long first = PagesOf(touch), again = PagesOf(touch);
    _exit(first > pages / 2 && again < pages / 20 ? 0 : 1);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  if (kUnderSanitizer) GTEST_SKIP() << "the sanitizer's malloc takes no such wishes";
  EXPECT_EQ(ended, 0);
}

// In a process of its own, which then runs on one processor for good.
TEST(Processors, AreCountedAsFarAsThisProcessMayRunOnThem) {
  const int before = UsableProcessors();
  EXPECT_GE(before, 1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    _exit(sched_setaffinity(0, sizeof one, &one) == 0 && UsableProcessors() == 1 ? 0 : 1);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
}

TEST(OpenFiles, AreCounted) {
  const Result<uint64_t> before = CountOpenFiles();
  ASSERT_TRUE(before.ok()) << before.error().message;
  const int one_more = dup(STDERR_FILENO);
  ASSERT_GE(one_more, 0);
  EXPECT_EQ(*CountOpenFiles(), *before + 1);
  close(one_more);
  EXPECT_EQ(*CountOpenFiles(), *before);
}

}  // namespace
}  // namespace keel
