// Real NCCL groups of several ranks that share the first GPU: they sum, train to the same bits, and
// those that are left abort when one is killed. Needs a GPU: label gpu, run by tests/gpu.sh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>
#include <set>

#include "store/tcp_store.h"
#include "tests/harness/ranks.h"

namespace keel {
namespace {

constexpr Duration kLimit = std::chrono::seconds(180);

class NcclGroup : public testing::Test {
 protected:
  std::unique_ptr<Ranks> Start(int count, const std::vector<std::string>& arguments = {}) {
    auto host = TcpStoreHost::Open({"127.0.0.1", 0});
    KEEL_CHECK(host.ok(), host.error().message);
    host_ = std::move(host).value();
    std::vector<std::string> argv = {std::string(KEEL_BIN_DIR) + "/nccl_probe"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const int port = host_->port();
    auto ranks = Ranks::Start({.argv = argv,
                               .count = count,
                               .environment =
                                   [count, port](int rank) {
                                     // NCCL refuses two ranks on one GPU, unless it takes them for
                                     // ranks on two hosts.
                                     return With(TorchEnvironment(rank, count, port),
                                                 {{"NCCL_HOSTID", "host" + std::to_string(rank)},
                                                  {"NCCL_SOCKET_IFNAME", "lo"}});
                                   }},
                              folder_);
    KEEL_CHECK(ranks.ok(), ranks.error().message);
    return std::move(ranks).value();
  }

  void SumAndTrain(int count) {
    const auto ranks = Start(count);
    const auto ends = ranks->WaitAll(kLimit);
    ASSERT_TRUE(ends.ok()) << ends.error().message;
    std::set<std::string> digests;
    for (int rank = 0; rank < count; ++rank) {
      ASSERT_TRUE((*ends)[rank].ok()) << ranks->Report();
      EXPECT_THAT(ranks->Stdout(rank), testing::HasSubstr("sum right"));
      const auto digest = ranks->AwaitLine(rank, "digest ", kLimit);
      ASSERT_TRUE(digest.ok()) << digest.error().message;
      digests.insert(*digest);
    }
    EXPECT_EQ(digests.size(), 1u);
    std::cout << ranks->Stdout(0);  // the figures
  }

  const TempDir folder_;
  std::unique_ptr<TcpStoreHost> host_;
};

TEST_F(NcclGroup, TwoRanksSumAndTrainToTheSameBits) { SumAndTrain(2); }

TEST_F(NcclGroup, FourRanksSumAndTrainToTheSameBits) { SumAndTrain(4); }

TEST_F(NcclGroup, SurvivorsOfAKilledRankAbort) {
  const auto ranks = Start(3, {"hang"});
  ASSERT_TRUE(ranks->AwaitAll("summing", kLimit).ok()) << ranks->Report();
  ASSERT_TRUE(ranks->Signal(2, SIGKILL).ok());
  const auto board = TcpStore::Connect({"127.0.0.1", host_->port()}, {});
  ASSERT_TRUE(board.ok()) << board.error().message;
  ASSERT_TRUE((*board)->Set("break", "x").ok());
  for (const int rank : {0, 1}) {
    const auto line = ranks->AwaitLine(rank, "aborted: ", kLimit);
    EXPECT_TRUE(line.ok()) << line.error().message;
  }
}

}  // namespace
}  // namespace keel
