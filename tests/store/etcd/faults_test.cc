// A store whose cluster loses members, with real signals.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "base/random.h"
#include "tests/store/etcd/cluster_test.h"

namespace keel {
namespace {

class EtcdFaults : public EtcdClusterTest {};

// Adds and replaces values one after the other until it is told to stop, and knows what must come
// out. Each operation must succeed: the limit is far beyond an election.
class Worker {
 public:
  explicit Worker(std::unique_ptr<EtcdStore> store, const std::string& name)
      : store_(std::move(store)), own_key_("chain/" + name), thread_([this] { Run(); }) {}

  // So many more operations succeed, or the safety limit passes.
  void AwaitMore(int64_t count) const {
    const int64_t enough = done_ + count;
    const TimePoint end = RealClock().Monotonic() + kSafetyLimit;
    while (done_ < enough && RealClock().Monotonic() < end) {
      RealClock().SleepFor(std::chrono::milliseconds(1));
    }
    EXPECT_GE(done_.load(), enough);
  }
  void Stop() {
    stop_ = true;
    thread_.join();
  }
  int64_t added() const { return added_; }
  Duration longest() const { return longest_; }

 private:
  void Run() {
    std::optional<std::string> last;
    for (int64_t i = 0; !stop_; ++i) {
      const TimePoint begin = RealClock().Monotonic();
      const Result<int64_t> sum = store_->Add("sum", 1);
      EXPECT_OK(sum);
      if (sum.ok()) ++added_;
      // Nobody else writes this key, so each link must hold.
      const std::string next = std::to_string(i);
      const auto outcome = store_->CompareSet(own_key_, last, next);
      EXPECT_OK(outcome);
      if (outcome.ok()) {
        EXPECT_TRUE(outcome->holds_desired) << i << ": " << outcome->now.value_or("(absent)");
        EXPECT_EQ(outcome->now, next);
      }
      last = next;
      longest_ = std::max(longest_, RealClock().Monotonic() - begin);
      ++done_;
    }
    EXPECT_EQ(*store_->Get(own_key_), last);
  }

  const std::unique_ptr<EtcdStore> store_;
  const std::string own_key_;
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> done_ = 0;
  int64_t added_ = 0;
  Duration longest_{0};
  std::thread thread_;
};

// Runs two workers while `strike` is called `times` times, and checks that nothing is lost or
// happens twice.
void StrikeUnderLoad(const std::function<std::unique_ptr<EtcdStore>()>& open, int times,
                     const std::function<void()>& strike) {
  Worker a(open(), "a");
  Worker b(open(), "b");
  for (int i = 0; i < times; ++i) {
    a.AwaitMore(20);
    strike();
    a.AwaitMore(20);
    b.AwaitMore(20);
  }
  a.Stop();
  b.Stop();
  EXPECT_EQ(*open()->Add("sum", 0), a.added() + b.added());
  std::printf("%d strikes: the longest pair of operations took %s\n", times,
              DurationText(std::max(a.longest(), b.longest())).c_str());
}

TEST_F(EtcdFaults, AStoreGoesOnWhenTheMemberThatItTalksToIsKilled) {
  Start({.is_quick = true});
  const auto store = Open();
  ASSERT_OK(store->Set("k", "before"));
  cluster_->Kill(cluster_->IndexOf(store->member()));
  EXPECT_EQ(*store->Get("k"), "before");
  EXPECT_OK(store->Set("k", "after"));
  EXPECT_EQ(*Open()->Get("k"), "after");
}

TEST_F(EtcdFaults, NothingIsLostOrDoneTwiceWhenTheLeaderIsKilled) {
  Start({.is_quick = true});
  StrikeUnderLoad([&] { return Open(); }, 2, [&] {
    const int leader = cluster_->Leader();
    cluster_->Kill(leader);
    cluster_->AwaitReady((leader + 1) % 3);
    cluster_->Restart(leader);
    cluster_->AwaitReady(leader);
  });
}

TEST_F(EtcdFaults, NothingIsLostOrDoneTwiceWhenMembersAreStoppedAndContinued) {
  Start({.is_quick = true});
  int next = 0;
  StrikeUnderLoad([&] { return Open(); }, 3, [&] {
    const int member = next++;
    cluster_->Signal(member, SIGSTOP);
    cluster_->AwaitReady((member + 1) % 3);
    cluster_->Signal(member, SIGCONT);
    cluster_->AwaitReady(member);
  });
}

using NightlyEtcdFaults = EtcdFaults;

TEST_F(NightlyEtcdFaults, NothingIsLostOrDoneTwiceInTwentyKills) {
  Start();
  const uint64_t seed = EntropySeed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  StrikeUnderLoad([&] { return Open(); }, 20, [&] {
    const int member = random.Chance(0.5) ? cluster_->Leader()
                                          : static_cast<int>(random.Uniform(3));
    cluster_->Kill(member);
    cluster_->AwaitReady((member + 1) % 3);
    cluster_->Restart(member);
    cluster_->AwaitReady(member);
  });
}

// The stopped member has the first write in its socket, and would apply it after the second one.
TEST_F(EtcdFaults, AMemberThatWakesUpDoesNotUndoLaterWrites) {
  Start({.is_quick = true});
  const auto store = Open();
  ASSERT_OK(store->Set("k", "0"));
  const int member = cluster_->IndexOf(store->member());
  cluster_->Signal(member, SIGSTOP);
  EXPECT_OK(store->Set("k", "1"));
  EXPECT_NE(cluster_->IndexOf(store->member()), member);
  EXPECT_OK(store->Set("k", "2"));
  EXPECT_EQ(*store->Add("n", 1), 1);
  cluster_->Signal(member, SIGCONT);
  cluster_->AwaitReady(member);
  EtcdStoreOptions options = Options();
  options.access = cluster_->AccessTo(member);
  const auto there = Open(options);
  for (int i = 0; i < 20; ++i) ASSERT_OK(there->Set("other", std::to_string(i)));
  EXPECT_EQ(*there->Get("k"), "2");
  EXPECT_EQ(*there->Add("n", 0), 1);
}

TEST_F(EtcdFaults, WithoutAQuorumAnOperationEndsAndSaysWhy) {
  Start({.is_quick = true});
  const auto store = Open(std::chrono::seconds(2));
  ASSERT_OK(store->Set("k", "before"));
  cluster_->Kill(0);
  cluster_->Kill(1);
  for (const Status& failed :
       {store->Set("k", "x"), Status(store->Get("k").error()),
        store->Wait({"never"}, std::chrono::seconds(1))}) {
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, Code::kTimeout) << failed.error().message;
    EXPECT_THAT(failed.error().message, testing::HasSubstr("refused the connection"));
    EXPECT_THAT(failed.error().message,
                testing::HasSubstr("check that more than half of its members run"));
  }
  cluster_->Restart(0);
  cluster_->Restart(1);
  cluster_->AwaitReady(0);
  EXPECT_OK(store->Set("k", "after"));
  EXPECT_EQ(*store->Get("k"), "after");
  EXPECT_EQ(*store->Add("m", 1), 1);
}

TEST_F(EtcdFaults, AWaitGoesOnWhenTheMemberThatItFollowsIsKilled) {
  Start({.is_quick = true});
  const auto store = Open();
  const auto setter = Open();
  Status waited;
  std::thread waiter([&] { waited = store->Wait({"w"}, kSafetyLimit); });
  // Two kills of different members, so that the one that is followed is among them.
  for (int member = 0; member < 2; ++member) {
    ASSERT_OK(setter->Set("other", "x"));
    cluster_->Kill(member);
    cluster_->AwaitReady(2);
    cluster_->Restart(member);
    cluster_->AwaitReady(member);
  }
  EXPECT_OK(setter->Set("w", "x"));
  waiter.join();
  EXPECT_OK(waited);
}

}  // namespace
}  // namespace keel
