// Leases, the claims that hang on them, and writes that depend on a claim.
#include "store/etcd/lease.h"

#include <signal.h>

#include <thread>

#include "base/base64.h"
#include "base/text.h"
#include "store/etcd/claims.h"
#include "tests/harness/fake_http.h"
#include "tests/harness/ranks.h"
#include "tests/store/etcd/cluster_test.h"

namespace keel {
namespace {

constexpr std::chrono::seconds kTtl(2);

class EtcdLeases : public EtcdClusterTest {
 protected:
  std::unique_ptr<EtcdLease> Grant() {
    auto lease = EtcdLease::Grant(cluster_->access(), kTtl, kSafetyLimit);
    EXPECT_OK(lease);
    return std::move(*lease);
  }
  std::unique_ptr<EtcdStore> OpenOn(int64_t lease, std::optional<EtcdFence> fence = {}) {
    EtcdStoreOptions options = Options();
    options.lease = lease;
    options.fence = std::move(fence);
    return Open(std::move(options));
  }
  // Until etcd lists this many keys of the job.
  void AwaitKeyCount(size_t count) {
    const TimePoint end = RealClock().Monotonic() + kSafetyLimit;
    std::vector<std::string> keys = cluster_->KeysBelow(kTestPrefix);
    while (keys.size() != count && RealClock().Monotonic() < end) {
      RealClock().SleepFor(std::chrono::milliseconds(50));
      keys = cluster_->KeysBelow(kTestPrefix);
    }
    EXPECT_EQ(keys.size(), count) << testing::PrintToString(keys);
  }
};

TEST_F(EtcdLeases, KeysVanishWhenTheirLeaseIsGivenBack) {
  Start({.members = 1, .is_quick = true});
  auto lease = Grant();
  const auto store = OpenOn(lease->id());
  ASSERT_OK(store->Set("k", "x"));
  ASSERT_OK(store->Set("large", std::string(kEtcdPartBytes + 1, 'x')));
  EXPECT_EQ(*store->Add("n", 1), 1);
  EXPECT_TRUE(store->CompareSet("c", std::nullopt, "x")->holds_desired);
  EXPECT_TRUE(lease->alive());
  lease.reset();
  AwaitKeyCount(0);
  const Status late = store->Set("k", "late");
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kStaleEpoch) << late.error().message;
  EXPECT_THAT(late.error().message, testing::HasSubstr("the lease that our keys hang on is over"));
  AwaitKeyCount(0);
}

TEST_F(EtcdLeases, AreKeptAliveUntilTheyAreNot) {
  Start({.members = 1, .is_quick = true});
  const auto lease = Grant();
  ASSERT_OK(OpenOn(lease->id())->Set("k", "x"));
  RealClock().SleepFor(2 * kTtl);
  EXPECT_TRUE(lease->alive());
  EXPECT_OK(lease->Beat(kSafetyLimit));
  EXPECT_EQ(*Open()->Get("k"), "x");
  ASSERT_OK(lease->Revoke(kSafetyLimit));
  EXPECT_TRUE(lease->over());
  EXPECT_FALSE(lease->alive());
  EXPECT_EQ(lease->Beat(kSafetyLimit).error().code, Code::kStaleEpoch);
  EXPECT_EQ(*Open()->Get("k"), std::nullopt);
}

TEST_F(EtcdLeases, AreNotAliveOnceNobodyCanKeepThem) {
  Start({.members = 1, .is_quick = true});
  const auto lease = Grant();
  cluster_->Signal(0, SIGSTOP);
  const TimePoint end = RealClock().Monotonic() + kSafetyLimit;
  while (lease->alive() && RealClock().Monotonic() < end) {
    RealClock().SleepFor(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(lease->alive());
  cluster_->Signal(0, SIGCONT);
}

TEST_F(EtcdLeases, AreSharedByAllWhoKeepThem) {
  Start({.members = 1, .is_quick = true});
  auto lease = Grant();
  ASSERT_OK(OpenOn(lease->id())->Set("k", "x"));
  auto shared = EtcdLease::Share(cluster_->access(), lease->id(), kTtl, kSafetyLimit);
  ASSERT_OK(shared);
  lease->LetExpire();
  lease.reset();
  RealClock().SleepFor(2 * kTtl);
  EXPECT_TRUE((*shared)->alive());
  EXPECT_EQ(*Open()->Get("k"), "x");
  const int64_t id = (*shared)->id();
  const auto other = Open();   // before: on a busy machine that takes a second
  (*shared).reset();   // it is not given back, but nobody keeps it any more
  EXPECT_EQ(*other->Get("k"), "x");
  AwaitKeyCount(0);
  const auto late = EtcdLease::Share(cluster_->access(), id, kTtl, kSafetyLimit);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kStaleEpoch) << late.error().message;
}

TEST_F(EtcdLeases, OutliveTheirLeader) {
  Start();
  auto lease = Grant();
  const auto store = OpenOn(lease->id());
  ASSERT_OK(store->Set("k", "x"));
  cluster_->Kill(cluster_->Leader());
  EXPECT_OK(store->Set("l", "x"));
  EXPECT_EQ(*store->Get("k"), "x");
  EXPECT_FALSE(lease->over());
}

TEST_F(EtcdLeases, AStoreWithoutOneLeavesNothingOfItsOwn) {
  Start({.members = 1, .is_quick = true});
  auto store = Open();
  ASSERT_OK(store->Set("k", "x"));
  ASSERT_OK(store->Set("k", std::string(kEtcdPartBytes + 1, 'x')));
  ASSERT_OK(store->Set("k", "y"));
  EXPECT_TRUE(*store->Delete("k"));
  store.reset();
  AwaitKeyCount(0);
}

class EtcdClaimsTest : public EtcdLeases {
 protected:
  EtcdClaims Claims() { return {cluster_->access(), kTestPrefix, kTtl, kSafetyLimit}; }
};

TEST_F(EtcdClaimsTest, EachTermIsClaimedOnceAndTermsNeverFall) {
  Start({.members = 1, .is_quick = true});
  EtcdClaims a = Claims();
  EtcdClaims b = Claims();
  EXPECT_EQ(a.Look()->has_value(), false);
  EXPECT_FALSE(a.alive());
  EXPECT_TRUE(*a.Claim(3, "host a:29400"));
  EXPECT_TRUE(a.alive());
  EXPECT_OK(a.Beat());
  const auto seen = b.Look();
  ASSERT_OK(seen);
  EXPECT_EQ((*seen)->term, 3);
  EXPECT_EQ((*seen)->text, "host a:29400");
  EXPECT_TRUE((*seen)->is_alive);
  EXPECT_EQ((*seen)->create_revision, a.fence().create_revision);
  EXPECT_FALSE(*b.Claim(3, "b"));
  EXPECT_FALSE(*b.Claim(2, "b"));
  EXPECT_OK(a.Release());
  EXPECT_FALSE(a.alive());
  EXPECT_FALSE((*b.Look())->is_alive);
  EXPECT_EQ((*b.Look())->term, 3);
  EXPECT_FALSE(*b.Claim(3, "b"));
  EXPECT_TRUE(*b.Claim(4, "b"));
  EXPECT_EQ((*a.Look())->text, "b");
}

TEST_F(EtcdClaimsTest, OneOfManyWhoClaimATermGetsIt) {
  Start({.members = 1, .is_quick = true});
  std::atomic<int> winners = 0;
  std::vector<std::unique_ptr<EtcdClaims>> claims;
  for (int i = 0; i < 6; ++i) {
    claims.push_back(std::make_unique<EtcdClaims>(cluster_->access(), kTestPrefix, kTtl,
                                                  kSafetyLimit));
  }
  std::vector<std::thread> threads;
  for (const auto& one : claims) {
    threads.emplace_back([&] {
      const Result<bool> claimed = one->Claim(1, "x");
      EXPECT_OK(claimed);
      if (claimed.ok() && *claimed) ++winners;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_F(EtcdClaimsTest, AHigherTermEndsTheWritesOfTheOneBefore) {
  Start({.members = 1, .is_quick = true});
  EtcdClaims old_one = Claims();
  EtcdClaims new_one = Claims();
  ASSERT_TRUE(*old_one.Claim(1, "old"));
  const auto store = OpenOn(0, old_one.fence());
  ASSERT_OK(store->Set("k", "old"));
  EXPECT_FALSE(*store->Delete("absent"));
  ASSERT_TRUE(*new_one.Claim(2, "new"));
  ASSERT_OK(OpenOn(0, new_one.fence())->Set("k", "new"));
  for (const Status& failed :
       {store->Set("k", "stale"), Status(store->Add("n", 1).error()),
        Status(store->CompareSet("k", "new", "stale").error()),
        Status(store->Delete("k").error())}) {
    EXPECT_EQ(failed.error().code, Code::kStaleEpoch) << failed.error().message;
    EXPECT_THAT(failed.error().message, testing::HasSubstr("another host may have taken over"));
  }
  EXPECT_EQ(*store->Get("k"), "new");
  EXPECT_EQ(*store->Get("n"), std::nullopt);
  EXPECT_EQ(old_one.Beat().error().code, Code::kStaleEpoch);
  EXPECT_FALSE(old_one.alive());
  EXPECT_TRUE(new_one.alive());
}

// The end of a process, without any word of its own.
TEST_F(EtcdClaimsTest, AProcessThatDiesLeavesOnlyTheTermThatItHeld) {
  Start();
  const TempDir folder;
  std::vector<std::string> members;
  for (const EtcdMember& member : cluster_->access().members) {
    members.push_back(EtcdMemberText(member));
  }
  RanksSpec spec;
  spec.argv = {std::string(KEEL_BIN_DIR) + "/etcd_holder", JoinList(members), kTestPrefix};
  ASSERT_OK_AND_ASSIGN(const auto holder, Ranks::Start(spec, folder));
  ASSERT_OK(holder->AwaitLine(0, Pattern("holding 1"), kSafetyLimit));
  EtcdClaims claims = Claims();
  EXPECT_TRUE((*claims.Look())->is_alive);
  EXPECT_EQ(*Open()->Get("small"), "x");
  ASSERT_OK(holder->Signal(0, SIGKILL));
  AwaitKeyCount(1);
  const auto seen = claims.Look();
  ASSERT_OK(seen);
  EXPECT_EQ((*seen)->term, 1);
  EXPECT_FALSE((*seen)->is_alive);
  EXPECT_EQ(cluster_->KeysBelow(kTestPrefix),
            std::vector<std::string>{EtcdKeys{kTestPrefix}.LastTerm()});
}


// Somebody is faster, once both have seen which terms there were. An hour's lease for the memory of
// a term that was never claimed would be left.
TEST(EtcdClaimRace, WhoeverIsTooLateLeavesNoLease) {
  FakeHttp server;
  const auto answer = [&](const std::string& path, const std::string& body) {
    server.Answer("POST " + path, 200, body, "Connection: close\r\n");
  };
  const std::string header = R"("header": {"revision": "7"})";
  answer("/v3/kv/range", "{" + header + "}");
  answer("/v3/lease/grant", "{" + header + "}");
  answer("/v3/lease/revoke", "{" + header + "}");
  server.Hang("POST /v3/kv/txn");
  EtcdClaims claims({.members = {{"127.0.0.1", server.port()}}}, kTestPrefix, kTtl, kSafetyLimit);
  Result<bool> claimed = true;
  std::thread claimant([&] { claimed = claims.Claim(1, "late"); });
  EXPECT_TRUE(server.AwaitAsked("POST /v3/kv/txn", 1));
  const Json first = {{"key", Base64Of(EtcdKeys{kTestPrefix}.LastTerm())},
                      {"value", Base64Of("1 faster")},
                      {"mod_revision", "7"}};
  answer("/v3/kv/range", "{" + header + R"(, "kvs": [)" + DumpJson(first) + "]}");
  answer("/v3/kv/txn", "{" + header + R"(, "responses": [{"response_range": {}}]})");
  claimant.join();
  ASSERT_OK(claimed);
  EXPECT_FALSE(*claimed);
  EXPECT_TRUE(server.AwaitAsked("POST /v3/lease/revoke", 2)) << "its own, and that of the memory";
}

}  // namespace
}  // namespace keel
