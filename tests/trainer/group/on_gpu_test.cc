// What an EpochGroup does with a link over NCCL: connecting, enqueueing, looking and ending.
// Does not   need a GPU: a link of the test's own stands for NCCL's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "elastic/protocol/exit_codes.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "trainer/nccl_module.h"

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kHangLimit = std::chrono::seconds(40);
constexpr const char* kLostPeer =
    "NCCL Error 6: remote process exited or there was a network error";

// Notes what it is asked for. It has a thread of its own in Own(), as every link.
class FakeLink final : public NcclLink {
 public:
  void Own() override {
    std::unique_lock lock(mutex_);
    noted_.wait(lock, [this] { return ends_; });
    lock.unlock();
    if (while_ending) while_ending();
    lock.lock();
    gone_ = true;
    noted_.notify_all();
  }
  Status AwaitReady(const std::function<bool()>& give_up) override {
    if (while_connecting) while_connecting();
    Note("connected");
    return give_up() ? Error{Code::kCancelled, "given up"} : Ok();
  }
  Status Meet() override {
    Note("met");
    return Ok();
  }
  Status Exchange(const std::vector<NcclPiece>&, const std::vector<NcclPiece>&, void*) override {
    Note("exchanged");
    return status();
  }
  Status Sum(void*, size_t, NcclType, void*) override { return Ok(); }
  Status status() const override {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  void Abort() override { End("aborted"); }
  void Leave() override { End("left"); }
  bool AwaitGone(Duration limit) override {
    std::unique_lock lock(mutex_);
    return noted_.wait_for(lock, limit, [this] { return gone_; });
  }
  std::string StateText() const override { return "a fake"; }

  void Fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    status_ = error;
  }
  // Once there are so many, or the test hangs.
  std::vector<std::string> Notes(size_t count) {
    std::unique_lock lock(mutex_);
    noted_.wait_for(lock, kHangLimit, [&] { return notes_.size() >= count; });
    return notes_;
  }

  std::function<void()> while_connecting, while_ending;

 private:
  void Note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(what);
    noted_.notify_all();
  }
  void End(const std::string& how) {
    Note(how);
    const std::lock_guard lock(mutex_);
    ends_ = true;
    noted_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable noted_;
  std::vector<std::string> notes_;
  Status status_;
  bool ends_ = false, gone_ = false;
};

class FakeNccl final : public NcclModule {
 public:
  int DeviceCount() override { return 1; }
  std::string Description() override { return "a fake"; }
  std::string DeviceName(int) override { return "fake"; }
  Result<std::string> NewId() override { return std::string("of a fake"); }
  std::shared_ptr<NcclLink> MakeLink(const NcclLinkSpec&) override { return link; }

  std::shared_ptr<FakeLink> link;   // the next one
};

FakeNccl& Fake() {
  static FakeNccl fake;
  return fake;
}

class GroupOnGpu : public testing::Test {
 protected:
  static void SetUpTestSuite() { UseStandIn({&Fake(), {}}); }

  Result<std::unique_ptr<EpochGroup>> Build(const std::shared_ptr<FakeLink>& link,
                                            const CancelToken& broken = CancelToken::Never()) {
    Fake().link = link;
    EpochGroup::Spec spec = crew_.SpecOf(0, 1, crew_.NewPrefix());
    spec.gpu = 0;
    return EpochGroup::Build(spec, broken);
  }

  GroupCrew crew_;
  const std::shared_ptr<FakeLink> link_ = std::make_shared<FakeLink>();
};

TEST_F(GroupOnGpu, IsConnectedAndHasMetBeforeItIsUsedAndIsAbortedOnce) {
  auto group = Build(link_);
  ASSERT_OK(group);
  EXPECT_THAT(link_->Notes(2), ElementsAre("connected", "met"));
  EXPECT_OK((*group)->ExchangeOnGpu({}, {}, nullptr));
  (*group)->Abort("one reason");
  (*group)->Abort("another");
  group->reset();
  EXPECT_THAT(link_->Notes(4), ElementsAre("connected", "met", "exchanged", "aborted"));
}

TEST_F(GroupOnGpu, ThatEndsInOrderLeaves) {
  auto group = Build(link_);
  ASSERT_OK(group);
  group->reset();
  EXPECT_THAT(link_->Notes(3), ElementsAre("connected", "met", "left"));
}

TEST_F(GroupOnGpu, ABreakWhileItConnectsAbortsTheLink) {
  const CancelToken broken;
  std::promise<void> may_connect;
  link_->while_connecting = [&] {
    broken.Cancel();
    may_connect.get_future().wait();
  };
  const auto group = Build(link_, broken);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.error().code, Code::kCancelled);
  EXPECT_THAT(link_->Notes(1), ElementsAre("aborted"));   // it does not wait for the connection
  may_connect.set_value();
  EXPECT_THAT(link_->Notes(2), ElementsAre("aborted", "connected"));
}

TEST_F(GroupOnGpu, AfterABreakNothingIsEnqueued) {
  const auto group = Build(link_);
  ASSERT_OK(group);
  (*group)->Abort("broken on purpose");
  EXPECT_EQ((*group)->ExchangeOnGpu({}, {}, nullptr).error().message, "broken on purpose");
  EXPECT_THAT(link_->Notes(3), ElementsAre("connected", "met", "aborted"));
}

// It waits for the other members' aborts, who may hear of it from us.
TEST_F(GroupOnGpu, AnAbortThatTakesLongHoldsUpTheNextGroupOnly) {
  std::promise<void> may_end;
  link_->while_ending = [done = may_end.get_future().share()] { done.wait(); };
  auto group = Build(link_);
  ASSERT_OK(group);
  (*group)->Abort("broken on purpose");
  EXPECT_EQ((*group)->status().error().message, "broken on purpose");
  group->reset();
  EXPECT_FALSE(EpochGroup::AwaitTeardown(std::chrono::milliseconds(20)));
  const auto second = std::make_shared<FakeLink>();
  auto next = std::async(std::launch::async, [&] { return Build(second); });
  EXPECT_EQ(next.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_THAT(second->Notes(0), ElementsAre());
  may_end.set_value();
  EXPECT_OK(next.get());
  EXPECT_THAT(second->Notes(3), ElementsAre("connected", "met", "left"));
}

TEST_F(GroupOnGpu, WhatNcclSaysOfALostPeerBreaksTheGroupAsItsLoss) {
  const auto group = Build(link_);
  ASSERT_OK(group);
  EXPECT_OK((*group)->LookAtGpu());
  link_->Fail({Code::kPeerLost, kLostPeer});
  EXPECT_EQ((*group)->LookAtGpu().error().code, Code::kPeerLost);
  EXPECT_THAT((*group)->status().error().message, HasSubstr("remote process exited"));
  EXPECT_THAT(link_->Notes(3), ElementsAre("connected", "met", "aborted"));
}

// It would meet the lost context again in every later group.
TEST_F(GroupOnGpu, AGpuThatIsLostEndsTheProcessAndIsBlamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto group = Build(link_);
        link_->Fail({Code::kNoDevice, "an illegal memory access was encountered"});
        (void)(*group)->LookAtGpu();
      },
      testing::ExitedWithCode(kExitDeviceLost),
      "device-lost reason=\"an illegal memory access was encountered\".*not the program's");
}

TEST_F(GroupOnGpu, AnAbortThatHangsEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        link_->while_ending = [] { RealClock().SleepFor(kHangLimit); };
        const auto group = Build(link_);
        (*group)->Abort("broken on purpose");
        RealClock().SleepFor(kHangLimit);
      },
      testing::ExitedWithCode(kExitDeviceLost), "device-lost reason=\"NCCL has not ended.*a fake");
}

}  // namespace
}  // namespace keel
