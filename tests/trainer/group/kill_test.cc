// Members of a group that are killed, in real processes: the others neither die nor hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "store/tcp_store.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/ranks.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLimit = 90s;  // only reached when something hangs
constexpr int kSize = 3;

class GroupKillTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Ranks>> Start(const std::string& mode) {
    auto host = TcpStoreHost::Open({.bind = "127.0.0.1"});
    if (!host.ok()) return host.error();
    host_ = std::move(*host);
    RanksSpec spec;
    // The rank comes from the environment, which a shell puts into the arguments.
    spec.argv = {"/bin/sh", "-c",
                 "exec " KEEL_BIN_DIR "/group_member " + std::to_string(host_->port()) +
                     " epoch/1 $RANK $WORLD_SIZE " + mode};
    spec.count = kSize;
    spec.environment = [](int rank) { return TorchEnvironment(rank, kSize, 1); };
    return Ranks::Start(std::move(spec), folder_);
  }

  TempDir folder_;
  std::unique_ptr<TcpStoreHost> host_;
};

TEST_F(GroupKillTest, TheOthersSeeItByThemselvesWhereMessagesAreSmall) {
  ASSERT_OK_AND_ASSIGN(const auto ranks, Start("votes"));
  ASSERT_OK(ranks->AwaitAll("working", kLimit));
  ASSERT_OK(ranks->Signal(1, SIGKILL));
  for (const int survivor : {0, 2}) {
    ASSERT_OK(ranks->AwaitLine(survivor, "ended peer-lost", kLimit));
    ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(survivor, kLimit));
    EXPECT_EQ(status, ExitStatus::Exited(0)) << ranks->Report();
  }
}

// A message that was half received does not end by itself: the break does that.
TEST_F(GroupKillTest, ABreakEndsWhatAKilledSenderLeftHalfSent) {
  ASSERT_OK_AND_ASSIGN(const auto ranks, Start("messages"));
  ASSERT_OK(ranks->AwaitAll("working", kLimit));
  ASSERT_OK(ranks->Signal(2, SIGKILL));
  for (const int survivor : {0, 1}) {
    ASSERT_OK(ranks->Signal(survivor, SIGUSR1));
    ASSERT_OK(ranks->AwaitLine(survivor, "ended ", kLimit));
    ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(survivor, kLimit));
    EXPECT_EQ(status, ExitStatus::Exited(0)) << ranks->Report();
  }
}

// Stopped, a member is silent but not dead: no connection tells.
TEST_F(GroupKillTest, ABreakEndsTheWaitForAMemberThatIsStopped) {
  ASSERT_OK_AND_ASSIGN(const auto ranks, Start("votes"));
  ASSERT_OK(ranks->AwaitAll("working", kLimit));
  ASSERT_OK(ranks->Signal(0, SIGSTOP));
  for (const int survivor : {1, 2}) {
    ASSERT_OK(ranks->Signal(survivor, SIGUSR1));
    ASSERT_OK(ranks->AwaitLine(survivor, "ended ", kLimit));
    ASSERT_OK_AND_ASSIGN(const ExitStatus status, ranks->Wait(survivor, kLimit));
    EXPECT_EQ(status, ExitStatus::Exited(0)) << ranks->Report();
  }
}

}  // namespace
}  // namespace keel
