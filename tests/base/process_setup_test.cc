// What the process settings promise. Each test leaves the process as it found it.
#include "base/process_setup.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

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

}  // namespace
}  // namespace keel
