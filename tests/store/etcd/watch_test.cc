// Watches see every change once and in order, whatever happens to members.
#include "store/etcd/watch.h"

#include <signal.h>

#include <thread>

#include "tests/store/etcd/cluster_test.h"

namespace keel {
namespace {

class EtcdWatchTest : public EtcdClusterTest {
 protected:
  // What the watch delivers until the key `end` changes, "key=value" or "key-".
  static std::vector<std::string> Until(EtcdStoreWatch& watch, const std::string& end) {
    std::vector<std::string> seen;
    const TimePoint limit = RealClock().Monotonic() + kSafetyLimit;
    while (RealClock().Monotonic() < limit) {
      const auto changes = watch.Next(kSafetyLimit);
      if (!changes.ok() && changes.error().code == Code::kTimeout) continue;
      EXPECT_OK(changes);
      if (!changes.ok()) return seen;
      for (const EtcdChange& change : *changes) {
        if (change.key == end) return seen;
        seen.push_back(change.key + (change.value ? "=" + *change.value : "-"));
      }
    }
    ADD_FAILURE() << "the watch has not seen " << end;
    return seen;
  }

  // Sets w/0, w/1, ... and strikes after each tenth; the watch must see all of them in order.
  void SeeAllWhile(EtcdStoreWatch& watch, int count, const std::function<void(int)>& strike) {
    const auto store = Open();
    std::vector<std::string> expected;
    std::vector<std::string> seen;
    ASSERT_OK(watch.Begin(kSafetyLimit));
    std::thread reader([&] { seen = Until(watch, "w/end"); });
    for (int i = 0; i < count; ++i) {
      const std::string n = std::to_string(i);
      EXPECT_OK(store->Set("w/" + n, n));
      expected.push_back("w/" + n + "=" + n);
      if (i % 10 == 5) strike(i / 10);
    }
    EXPECT_OK(store->Set("w/end", ""));
    reader.join();
    EXPECT_EQ(seen, expected);
  }
};

TEST_F(EtcdWatchTest, DeliversValuesAndDeletionsUnderTheStoresNames) {
  Start({.members = 1, .is_quick = true});
  const auto store = Open();
  ASSERT_OK(store->Set("w/old", "old"));
  const auto listed = store->List("w/");
  ASSERT_OK(listed);
  ASSERT_EQ(listed->keys.size(), 1u);
  EXPECT_EQ(listed->keys[0].first, "w/old");
  const auto watch = store->Watch("w/", listed->revision + 1);
  const std::string large(kEtcdPartBytes * 2 + 5, 'y');
  ASSERT_OK(store->Set("w/a", "1"));
  ASSERT_OK(store->Set("elsewhere", "1"));
  ASSERT_OK(store->Set("w/large", large));
  ASSERT_OK(store->Set("w/large", "small"));
  EXPECT_TRUE(*store->Delete("w/a"));
  ASSERT_OK(store->Set("w/end", ""));
  EXPECT_EQ(Until(*watch, "w/end"),
            (std::vector<std::string>{"w/a=1", "w/large=" + large, "w/large=small", "w/a-"}));
  EXPECT_TRUE(watch->Next(std::chrono::milliseconds(1))->empty());
}

TEST_F(EtcdWatchTest, FromNowOnBeginsWhenItSaysSo) {
  Start({.members = 1, .is_quick = true});
  const auto store = Open();
  ASSERT_OK(store->Set("before", "x"));
  const auto watch = store->Watch("", 0);
  ASSERT_OK(watch->Begin(kSafetyLimit));
  ASSERT_OK(store->Set("after", "x"));
  ASSERT_OK(store->Set("end", "x"));
  EXPECT_EQ(Until(*watch, "end"), std::vector<std::string>{"after=x"});
}

TEST_F(EtcdWatchTest, CanBeCancelled) {
  Start({.members = 1, .is_quick = true});
  const auto watch = Open()->Watch("", 0);
  const CancelToken cancel;
  std::thread canceller([&] { cancel.Cancel(); });
  EXPECT_EQ(watch->Next(kSafetyLimit, cancel).error().code, Code::kCancelled);
  canceller.join();
  EXPECT_TRUE(watch->Next(std::chrono::milliseconds(1)).ok());
}

TEST_F(EtcdWatchTest, SaysThatChangesWereCompacted) {
  Start({.members = 1, .is_quick = true});
  const auto store = Open();
  for (int i = 0; i < 5; ++i) ASSERT_OK(store->Set("k", std::to_string(i)));
  const int64_t now = store->List("")->revision;
  ASSERT_OK(cluster_->Ask(0, "/v3/kv/compaction", {{"revision", std::to_string(now)}}));
  const auto watch = store->Watch("", 1);
  for (int i = 0; i < 2; ++i) {
    const auto changes = watch->Next(kSafetyLimit);
    ASSERT_FALSE(changes.ok());
    EXPECT_EQ(changes.error().code, Code::kNotFound);
    EXPECT_THAT(changes.error().message, testing::HasSubstr("read all keys anew"));
  }
  // Whoever waits does just that.
  ASSERT_OK(store->Wait({"k"}, kSafetyLimit));
}

TEST_F(EtcdWatchTest, LosesNothingWhenTheMemberThatDeliversIsKilled) {
  Start({.is_quick = true});
  const auto watch = Open()->Watch("w/", 0);
  SeeAllWhile(*watch, 30, [&](int strike) {
    cluster_->Kill(strike);
    cluster_->AwaitReady((strike + 1) % 3);
    cluster_->Restart(strike);
    cluster_->AwaitReady(strike);
  });
}

TEST_F(EtcdWatchTest, LeavesAMemberThatIsStopped) {
  Start({.is_quick = true});
  const auto watch = Open()->Watch("w/", 0);
  ASSERT_OK(watch->Begin(kSafetyLimit));
  const int member = cluster_->IndexOf(watch->member());
  SeeAllWhile(*watch, 10, [&](int) { cluster_->Signal(member, SIGSTOP); });
  EXPECT_NE(cluster_->IndexOf(watch->member()), member);
  cluster_->Signal(member, SIGCONT);
}

TEST_F(EtcdWatchTest, GoesOnAfterTheClusterHadNoQuorum) {
  Start({.is_quick = true});
  const auto watch = Open()->Watch("w/", 0);
  ASSERT_OK(watch->Begin(kSafetyLimit));
  const int stays = cluster_->IndexOf(watch->member());
  SeeAllWhile(*watch, 10, [&](int) {
    for (int i = 1; i < 3; ++i) cluster_->Kill((stays + i) % 3);
    for (int i = 1; i < 3; ++i) cluster_->Restart((stays + i) % 3);
    for (int i = 0; i < 3; ++i) cluster_->AwaitReady(i);
  });
}

// Without the metadata "hasleader" such a watch would be silent for ever, and look healthy.
TEST_F(EtcdWatchTest, EndsAtAMemberThatHasLostItsLeader) {
  Start();
  EtcdWatch watch(cluster_->AccessTo(0), EtcdRange::Prefix(kTestPrefix), 0);
  ASSERT_OK(watch.Begin(kSafetyLimit));
  cluster_->Kill(1);
  cluster_->Kill(2);
  const TimePoint end = RealClock().Monotonic() + kSafetyLimit;
  Result<std::vector<EtcdChange>> last = std::vector<EtcdChange>();
  while (last.ok() && RealClock().Monotonic() < end) last = watch.Next(std::chrono::seconds(1));
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().code, Code::kTimeout) << last.error().message;
}

}  // namespace
}  // namespace keel
