// Writes whose answers are lost, and which arrive late.
#include "store/etcd/writer.h"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "base/fd.h"
#include "store/listen_socket.h"
#include "tests/store/etcd/cluster_test.h"

namespace keel {
namespace {

class EtcdWriterTest : public EtcdClusterTest {
 protected:
  // The body of what somebody who has hung up by now has sent to this socket.
  static std::string BodySentTo(const ListenSocket& socket) {
    const Fd connection(accept(socket.number(), nullptr, nullptr));
    std::string all;
    std::array<char, 4096> piece;
    for (ssize_t got = 1; got > 0;) {
      got = recv(connection.number(), piece.data(), piece.size(), 0);
      if (got > 0) all.append(piece.data(), static_cast<size_t>(got));
    }
    return all.substr(all.find("\r\n\r\n") + 4);
  }
};

// The first member takes the question and says nothing. Long after, the question reaches etcd.
TEST_F(EtcdWriterTest, AWriteThatArrivesLateIsNotApplied) {
  Start({.members = 1, .is_quick = true});
  auto silent = ListenSocket::Listen("127.0.0.1", 0);
  ASSERT_OK(silent);
  EtcdAccess access = cluster_->access();
  access.members.insert(access.members.begin(), {"127.0.0.1", silent->port()});
  EtcdClient client(access);
  while (client.member() != access.members[0]) client.AskNextMember();
  EtcdWriter writer(client, "writer", 0, std::nullopt);
  const auto set = [&](const std::string& value) {
    EtcdTxn txn;
    txn.then = {EtcdPut("k", value, 0)};
    const auto reply = writer.Write(txn, kSafetyLimit);
    EXPECT_OK(reply);
    EXPECT_TRUE(reply->succeeded);
  };
  set("first");
  EXPECT_EQ(client.member(), access.members[1]);
  set("second");
  const Result<Json> late = ParseJson(BodySentTo(*silent));
  ASSERT_OK(late);
  const auto answer = cluster_->Ask(0, "/v3/kv/txn", *late);
  ASSERT_OK(answer);
  EXPECT_FALSE(EtcdTxnReply(*answer)->succeeded);
  const auto read = cluster_->Ask(0, "/v3/kv/range", EtcdRangeQuestion({"k"}));
  EXPECT_EQ(EtcdRangeReply(*read)->results[0][0].value, "second");
  writer.Forget();
  EXPECT_TRUE(cluster_->KeysBelow("writer").empty());
}

// The leader has the write in its log, but nobody to agree with for several attempts.
TEST_F(EtcdWriterTest, AWriteThatIsAgreedOnLateHappensOnce) {
  Start();
  const int leader = cluster_->Leader();
  EtcdStoreOptions options = Options();
  options.access = cluster_->AccessTo(leader);
  const auto store = Open(options);
  ASSERT_OK(store->Set("k", "before"));
  for (int i = 1; i < 3; ++i) cluster_->Signal((leader + i) % 3, SIGSTOP);
  Result<Store::Outcome> outcome = Store::Outcome{};
  std::thread writer([&] { outcome = store->CompareSet("k", "before", "after"); });
  RealClock().SleepFor(3 * kEtcdAttemptLimit);  // so that its first attempts are over
  for (int i = 1; i < 3; ++i) cluster_->Signal((leader + i) % 3, SIGCONT);
  writer.join();
  ASSERT_OK(outcome);
  EXPECT_TRUE(outcome->holds_desired);
  EXPECT_EQ(*store->Get("k"), "after");
  EXPECT_EQ(*store->Add("n", 1), 1);
}

}  // namespace
}  // namespace keel
