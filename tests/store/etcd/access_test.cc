// Certificates, users, and endpoints that are none: each refusal is one sentence that says what
// happened, to what, and what to do.
#include "store/etcd/access.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <atomic>
#include <thread>

#include "store/etcd/lease.h"
#include "tests/harness/fake_http.h"
#include "tests/harness/free_port.h"
#include "tests/store/etcd/cluster_test.h"
#include "tests/store/etcd/two_addresses.h"

namespace keel {
namespace {

using tcp = boost::asio::ip::tcp;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class EtcdAccessTest : public EtcdClusterTest {
 protected:
  static Error Refused(const EtcdAccess& access, Duration limit = kSafetyLimit) {
    const auto store =
        EtcdStore::Open({.access = access, .prefix = kTestPrefix, .limit = limit});
    if (store.ok()) {
      ADD_FAILURE() << "the cluster let us in";
      return {};
    }
    std::printf("%s\n", store.error().message.c_str());
    EXPECT_THAT(store.error().message, Not(HasSubstr("\n")));
    return store.error();
  }
};

TEST_F(EtcdAccessTest, ATlsClusterTakesWhoeverItsCaHasSigned) {
  const TestCertificates ours("ours");
  Start({.tls = &ours});
  const auto store = Open();
  ASSERT_OK(store->Set("k", "x"));
  ASSERT_OK(store->Wait({"k"}, kSafetyLimit));
  const auto watch = store->Watch("k", 1);
  EXPECT_EQ(watch->Next(kSafetyLimit)->size(), 1u);
  cluster_->Kill(cluster_->IndexOf(store->member()));
  EXPECT_EQ(*store->Get("k"), "x");
}

TEST_F(EtcdAccessTest, ATlsClusterRefusesEverybodyElse) {
  const TestCertificates ours("ours");
  const TestCertificates theirs("theirs");
  Start({.members = 1, .is_quick = true, .tls = &ours});
  EtcdAccess access = cluster_->access();

  access.tls->ca_file = theirs.ca_file();
  Error error = Refused(access);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("has a certificate that our CA file does not vouch"),
                                   HasSubstr("give the CA that signed")));

  access.tls = theirs.Signed();
  access.tls->ca_file = ours.ca_file();
  error = Refused(access);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("refused our certificate"),
                                   HasSubstr("give a client certificate and key")));

  access.tls = EtcdTls{ours.ca_file(), "", ""};
  error = Refused(access);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("refused our certificate"),
                                   HasSubstr("give a client certificate and key")));

  access.tls = EtcdTls{"/nowhere/ca.pem", "", ""};
  error = Refused(access);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("the CA file '/nowhere/ca.pem' cannot be used (No such "
                                       "file or directory); check its path"));

  // It says nothing to those who do not greet over TLS, as if it were stopped.
  access.tls.reset();
  error = Refused(access, std::chrono::seconds(1));
  EXPECT_EQ(error.code, Code::kTimeout);
  EXPECT_THAT(error.message, HasSubstr("and whether they want TLS"));
}

TEST_F(EtcdAccessTest, APlainClusterIsNotTakenForATlsOne) {
  const TestCertificates ours("ours");
  Start({.members = 1, .is_quick = true});
  EtcdAccess access = cluster_->access();
  access.tls = ours.Signed();
  const Error error = Refused(access, std::chrono::seconds(1));
  EXPECT_EQ(error.code, Code::kTimeout);
  EXPECT_THAT(error.message, AllOf(testing::ContainsRegex("(greet|greeting) over TLS"),
                                   HasSubstr("leave the CA file out if they do not speak TLS")));
  access.tls.reset();
  access.user = "somebody";
  EXPECT_THAT(Refused(access).message, HasSubstr("has no users; leave user and password out"));
}

TEST_F(EtcdAccessTest, UsersAreKnownByTheirPasswords) {
  Start({.is_quick = true});
  cluster_->EnableUsers("secret");
  EtcdAccess access = cluster_->access();
  Error error = Refused(access);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("asks for a user; give a user and a password"));

  access.user = "root";
  access.password = "wrong";
  error = Refused(access);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("does not take the password of user 'root'; check both"));

  access.password = "secret";
  const auto store = Open({.access = access, .prefix = kTestPrefix, .limit = kSafetyLimit});
  ASSERT_OK(store->Set("k", "x"));
  ASSERT_OK(store->Wait({"k"}, kSafetyLimit));
  auto lease = EtcdLease::Grant(access, std::chrono::seconds(2), kSafetyLimit);
  ASSERT_OK(lease);
  EXPECT_OK((*lease)->Beat(kSafetyLimit));
  // A member that has started anew knows none of the tokens.
  for (int i = 0; i < 3; ++i) {
    cluster_->Kill(i);
    cluster_->Restart(i);
    cluster_->AwaitReady(i);
    EXPECT_OK(store->Set("k", std::to_string(i)));
  }
  EXPECT_EQ(*store->Get("k"), "2");
}

TEST_F(EtcdAccessTest, AUserStaysWithinWhatItsRoleMayDo) {
  Start({.members = 1, .is_quick = true});
  ASSERT_OK(cluster_->Ask(0, "/v3/auth/user/add", {{"name", "job"}, {"password", "pw"}}));
  cluster_->EnableUsers("secret");
  EtcdAccess access = cluster_->access();
  access.user = "job";
  access.password = "pw";
  const Error error = Refused(access);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("does not let user 'job' do this; grant its role"));
  EtcdWatch watch(access, EtcdRange::Prefix(kTestPrefix), 0);
  const Status refused = watch.Begin(kSafetyLimit);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid) << refused.error().message;
}

TEST_F(EtcdAccessTest, ATokenThatHasExpiredIsFetchedAnew) {
  Start({.members = 1, .is_quick = true, .arguments = {"--auth-token-ttl", "1"}});
  cluster_->EnableUsers("secret");
  EtcdAccess access = cluster_->access();
  access.user = "root";
  access.password = "secret";
  const auto store = Open({.access = access, .prefix = kTestPrefix, .limit = kSafetyLimit});
  ASSERT_OK(store->Set("k", "0"));
  const auto watch = store->Watch("k", 0);
  ASSERT_OK(watch->Begin(kSafetyLimit));
  const TimePoint end = RealClock().Monotonic() + kSafetyLimit;
  const auto other = EtcdConnection::Open(access.members[0], {}, 0, end);
  ASSERT_OK(other);
  const auto ask = [&](const std::string& path, const Json& question, const std::string& token) {
    return (*other)->Ask({path, DumpJson(question), token}, end).value();
  };
  const Json login = {{"name", "root"}, {"password", "secret"}};
  const Json answer = ParseJson(ask("/v3/auth/authenticate", login, "").body).value();
  // A question renews its token, so the one that is as old as the store's is tried only once.
  RealClock().SleepFor(std::chrono::seconds(4));
  const Json range = EtcdRangeQuestion({"k"});
  ASSERT_EQ(ask("/v3/kv/range", range, answer.value("token", "")).status, 401);
  EXPECT_OK(store->Set("k", "1"));
  EXPECT_EQ(watch->Next(kSafetyLimit)->size(), 1u);
  EXPECT_OK(store->Wait({"k"}, kSafetyLimit));
}

TEST_F(EtcdAccessTest, OfANameWithSeveralAddressesEachIsTried) {
  Start({.members = 1, .is_quick = true});
  EtcdAccess access = cluster_->access();
  access.members[0].host = kTwoAddresses;   // nobody listens at the first one
  const auto store = Open({.access = access, .prefix = kTestPrefix, .limit = kSafetyLimit});
  ASSERT_NE(store, nullptr);
  ASSERT_OK(store->Set("k", "x"));
  EXPECT_EQ(*store->Get("k"), "x");
}

TEST_F(EtcdAccessTest, EndpointsWhereNobodyListensAreNamed) {
  EtcdAccess access;
  access.members = {{"127.0.0.1", FreePort()}, {"127.0.0.1", FreePort()}};
  const Error error = Refused(access, std::chrono::seconds(1));
  EXPECT_EQ(error.code, Code::kTimeout);
  for (const EtcdMember& member : access.members) {
    EXPECT_THAT(error.message, HasSubstr(EtcdMemberText(member) + " refused the connection"));
  }
  EXPECT_THAT(error.message, HasSubstr("check that more than half of its members run"));
}

TEST(EtcdEndpoints, WhereAnotherServerListensAreNamed) {
  FakeHttp server;
  const EtcdAccess access{.members = {{"127.0.0.1", server.port()}}};
  const auto store = EtcdStore::Open({.access = access, .prefix = kTestPrefix});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Code::kCorrupt);
  EXPECT_THAT(store.error().message,
              AllOf(HasSubstr("does not serve etcd's JSON gateway (its answer has status 404)"),
                    HasSubstr("etcd 3.4 or newer")));
}

// etcd from 3.5.7 on says no word to a token that it does not know.
TEST(EtcdEndpoints, AHangUpOnATokenFetchesAnother) {
  FakeHttp server;
  const std::string range = R"({"header": {"revision": "7"}})";
  server.Answer("POST /v3/auth/authenticate", 200, R"({"header": {}, "token": "one"})");
  server.AnswerRaw("POST /v3/kv/range", "");
  EtcdClient client({.members = {{"127.0.0.1", server.port()}}, .user = "u", .password = "p"});
  Result<Json> answer = Json();
  std::thread asker([&] {
    answer = client.Ask("/v3/kv/range", EtcdRangeQuestion({"k"}), kSafetyLimit);
  });
  EXPECT_TRUE(server.AwaitAsked("POST /v3/auth/authenticate", 2));
  server.Answer("POST /v3/kv/range", 200, range);
  asker.join();
  ASSERT_OK(answer);
  EXPECT_EQ(*EtcdRevision(*answer), 7);
}

Result<Json> AskOne(EtcdClient& client, Duration limit) {
  return client.Ask("/v3/kv/range", EtcdRangeQuestion({"k"}), limit);
}

TEST(EtcdEndpoints, AMemberThatIsSlowHasMoreTimeInEachRound) {
  FakeHttp server;
  server.Hang("POST /v3/kv/range");
  EtcdClient client({.members = {{"127.0.0.1", server.port()}}});
  const Result<Json> answer = AskOne(client, std::chrono::seconds(2));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Code::kTimeout);
  EXPECT_THAT(answer.error().message,
              AllOf(ContainsRegex("did not answer within the [0-9.]+ m?s that it was given; check"),
                    HasSubstr("and that they are no slower than that")));
  const size_t asked = server.requests().size();
  EXPECT_LE(asked, 3u) << "half a second, a second, and what was left";
  EXPECT_FALSE(AskOne(client, std::chrono::seconds(1)).ok());
  EXPECT_EQ(server.requests().size(), asked + 1) << "where there is no other one to ask";
}

// A member that answers each greeting with one alert of TLS, which ends that connection.
class AlertingMember {
 public:
  explicit AlertingMember(uint8_t alert) : thread_([this, alert] { Run(alert); }) {}
  ~AlertingMember() {
    is_over_ = true;
    boost::system::error_code ignored;
    tcp::socket(loop_).connect(where_, ignored);
    thread_.join();
  }

  EtcdAccess access(const TestCertificates& ours) const {
    return {.members = {{"127.0.0.1", where_.port()}}, .tls = EtcdTls{ours.ca_file(), "", ""}};
  }

 private:
  void Run(uint8_t alert) {
    while (!is_over_) {
      boost::system::error_code failure;
      tcp::socket visitor(loop_);
      acceptor_.accept(visitor, failure);
      std::array<char, 4096> greeting;
      if (!is_over_) visitor.read_some(boost::asio::buffer(greeting), failure);
      constexpr uint8_t kAlert = 21, kFatal = 2;
      const std::array<uint8_t, 7> record = {kAlert, 3, 3, 0, 2, kFatal, alert};
      boost::asio::write(visitor, boost::asio::buffer(record), failure);
    }
  }

  boost::asio::io_context loop_;
  tcp::acceptor acceptor_{loop_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  const tcp::endpoint where_ = acceptor_.local_endpoint();
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

TEST(EtcdEndpoints, OnlyAnAlertAboutTheCertificateIsARefusalOfIt) {
  // Its own CA: under ThreadSanitizer, all of the machine's take half a second to read.
  const TestCertificates ours("ours");
  for (const uint8_t alert : {40, 70, 80, 112}) {
    const AlertingMember member(alert);
    EtcdClient client(member.access(ours));
    const Result<Json> answer = AskOne(client, std::chrono::seconds(1));
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, Code::kTimeout) << "it may pass";
    EXPECT_THAT(answer.error().message,
                AllOf(HasSubstr("broke off TLS ("), Not(HasSubstr("certificate"))));
  }
  for (const uint8_t alert : {42, 48, 116}) {
    const AlertingMember member(alert);
    EtcdClient client(member.access(ours));
    const Result<Json> answer = AskOne(client, kSafetyLimit);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, Code::kInvalid);
    EXPECT_THAT(answer.error().message, HasSubstr("refused our certificate ("));
  }
}

TEST(EtcdEndpoints, OfANameThatIsNoneOnlyTheNameIsToBeChecked) {
  EtcdClient client({.members = {{"nowhere.invalid", kEtcdPort}}});
  const Result<Json> answer = AskOne(client, std::chrono::seconds(1));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Code::kTimeout) << "it may be known soon";
  EXPECT_THAT(answer.error().message,
              AllOf(ContainsRegex("cannot be resolved|name service did not answer"),
                    HasSubstr("give a numeric address"), Not(HasSubstr("its members run")),
                    Not(HasSubstr("want TLS"))));
}

}  // namespace
}  // namespace keel
