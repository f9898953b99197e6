// What an EpochGroup does with NCCL: connecting, enqueueing, looking at work and aborting. A module
// of the test's own stands for NCCL's.
// Does not   need a GPU: what CUDA and NCCL themselves do is left to tests/gpu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/options_env.h"
#include "tests/trainer/crew.h"
#include "trainer/nccl_module.h"

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kHangLimit = std::chrono::seconds(40);
constexpr const char* kLostPeer =
    "NCCL Error 6: remote process exited or there was a network error";

class FakeBackend final : public c10d::Backend {
 public:
  using Backend::Backend;
  ~FakeBackend() override = default;
};

class FakeWork final : public c10d::Work {
 public:
  FakeWork(bool completed, const char* error) : completed_(completed), error_(error) {}
  bool isCompleted() override { return completed_; }
  std::exception_ptr exception() const override {
    return error_ == nullptr ? nullptr : std::make_exception_ptr(std::runtime_error(error_));
  }

 private:
  const bool completed_;
  const char* const error_;
};

EpochGroup::GpuWork WorkOf(bool completed, const char* error) {
  return c10::make_intrusive<FakeWork>(completed, error);
}

// Notes what it is asked for.
class FakeNccl final : public NcclModule {
 public:
  int DeviceCount() override { return 1; }
  std::string Description() override { return "a fake"; }
  std::string DeviceName(int) override { return "fake"; }
  c10::intrusive_ptr<c10d::Backend> MakeBackend(const c10::intrusive_ptr<c10d::Store>&, int rank,
                                                int size, int,
                                                std::chrono::milliseconds) override {
    return c10::make_intrusive<FakeBackend>(rank, size);
  }
  void Connect(c10d::Backend&, int) override {
    if (while_connecting) while_connecting();
    Note("connected");
  }
  c10::intrusive_ptr<c10d::Work> Meet(c10d::Backend&, int) override {
    Note("met");
    return WorkOf(true, nullptr);
  }
  void Abort(c10d::Backend&) override {
    if (while_aborting) while_aborting();
    Note("aborted");
  }

  void Note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(what);
    noted_.notify_all();
  }
  // Once there are so many, or the test hangs.
  std::vector<std::string> Notes(size_t count) {
    std::unique_lock lock(mutex_);
    noted_.wait_for(lock, kHangLimit, [&] { return notes_.size() >= count; });
    return notes_;
  }

  std::function<void()> while_connecting;
  std::function<void()> while_aborting;

 private:
  std::mutex mutex_;
  std::condition_variable noted_;
  std::vector<std::string> notes_;
};

class GroupOnGpu : public testing::Test {
 protected:
  Result<std::unique_ptr<EpochGroup>> Build(const CancelToken& broken = CancelToken::Never()) {
    EpochGroup::Spec spec = crew_.SpecOf(0, 1, crew_.NewPrefix());
    spec.gpu = 0;
    spec.nccl = &nccl_;
    return EpochGroup::Build(spec, broken);
  }

  Crew crew_;
  FakeNccl nccl_;
};

TEST_F(GroupOnGpu, IsConnectedAndHasMetBeforeItIsUsedAndIsAbortedOnce) {
  auto group = Build();
  ASSERT_TRUE(group.ok()) << group.error().message;
  EXPECT_THAT(nccl_.Notes(2), ElementsAre("connected", "met"));
  EXPECT_TRUE((*group)->PostOnGpu([](c10d::Backend&) { return WorkOf(true, nullptr); }).ok());
  (*group)->Abort("one reason");
  (*group)->Abort("another");
  group->reset();
  EXPECT_THAT(nccl_.Notes(3), ElementsAre("connected", "met", "aborted"));
}

// LibTorch cannot end it: the communicator that it makes all the same must not be left behind.
TEST_F(GroupOnGpu, ABreakWhileItConnectsAbortsTheCommunicatorOnceThereIsOne) {
  const CancelToken broken;
  std::promise<void> may_connect;
  nccl_.while_connecting = [&] {
    broken.Cancel();
    may_connect.get_future().wait();
  };
  const auto group = Build(broken);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.error().code, Code::kCancelled);
  may_connect.set_value();
  EXPECT_THAT(nccl_.Notes(2), ElementsAre("connected", "aborted"));
}

// As the abort would free what is in use.
TEST_F(GroupOnGpu, AnAbortComesAfterWhatIsJustBeingEnqueued) {
  const auto group = Build();
  ASSERT_TRUE(group.ok()) << group.error().message;
  std::thread breaker;
  const auto posted = (*group)->PostOnGpu([&](c10d::Backend&) {
    breaker = std::thread([&] { (*group)->Abort("broken on purpose"); });
    while ((*group)->status().ok()) RealClock().SleepFor(std::chrono::milliseconds(1));
    RealClock().SleepFor(std::chrono::milliseconds(20));   // for an abort that does not wait
    nccl_.Note("enqueued");
    return WorkOf(true, nullptr);
  });
  breaker.join();
  EXPECT_TRUE(posted.ok());
  EXPECT_THAT(nccl_.Notes(4), ElementsAre("connected", "met", "enqueued", "aborted"));
  const auto later = (*group)->PostOnGpu([&](c10d::Backend&) {
    nccl_.Note("enqueued after the abort");
    return WorkOf(true, nullptr);
  });
  EXPECT_EQ(later.error().message, "broken on purpose");
  EXPECT_EQ(nccl_.Notes(4).size(), 4u);
}

// It waits for the other members' aborts, who may hear of it from us.
TEST_F(GroupOnGpu, AnAbortThatTakesLongHoldsUpTheNextGroupOnly) {
  std::promise<void> may_abort;
  nccl_.while_aborting = [done = may_abort.get_future().share()] { done.wait(); };
  auto group = Build();
  ASSERT_TRUE(group.ok()) << group.error().message;
  (*group)->Abort("broken on purpose");
  EXPECT_EQ((*group)->status().error().message, "broken on purpose");
  group->reset();
  EXPECT_FALSE(EpochGroup::AwaitTeardown(std::chrono::milliseconds(20)));
  auto next = std::async(std::launch::async, [&] { return Build(); });
  EXPECT_EQ(next.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  may_abort.set_value();
  EXPECT_TRUE(next.get().ok());
  EXPECT_THAT(nccl_.Notes(6), ElementsAre("connected", "met", "aborted", "connected", "met",
                                          "aborted"));
}

TEST_F(GroupOnGpu, WhatNcclThrowsOfALostPeerBreaksTheGroupAsItsLoss) {
  const auto group = Build();
  ASSERT_TRUE(group.ok()) << group.error().message;
  const auto posted = (*group)->PostOnGpu([](c10d::Backend&) -> EpochGroup::GpuWork {
    throw std::runtime_error(kLostPeer);
  });
  ASSERT_FALSE(posted.ok());
  EXPECT_EQ(posted.error().code, Code::kPeerLost);
  EXPECT_THAT((*group)->status().error().message, HasSubstr("remote process exited"));
  EXPECT_THAT(nccl_.Notes(3), ElementsAre("connected", "met", "aborted"));
}

TEST_F(GroupOnGpu, LookingAtWorkFindsWhatNobodyElseWatchesFor) {
  const auto group = Build();
  ASSERT_TRUE(group.ok()) << group.error().message;
  EXPECT_TRUE((*group)->LookAt(WorkOf(false, nullptr)).ok());
  EXPECT_TRUE((*group)->LookAt(WorkOf(true, nullptr)).ok());
  EXPECT_EQ((*group)->LookAt(WorkOf(true, kLostPeer)).error().code, Code::kPeerLost);
  EXPECT_THAT(nccl_.Notes(3), ElementsAre("connected", "met", "aborted"));
}

// Read as LibTorch's part for NCCL reads it; the launcher, and a user, may have said other things.
TEST_F(GroupOnGpu, LibTorchIsToldNotToWatchIt) {
  ASSERT_TRUE(SetOwnEnvironment({{"TORCH_NCCL_BLOCKING_WAIT", "0"},
                                 {"NCCL_BLOCKING_WAIT", "0"},
                                 {"TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"}}).ok());
  PrepareForNccl();
  EXPECT_TRUE(c10d::getCvarBool({"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"}, false));
  EXPECT_EQ(c10d::getCvarInt({"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 2000), 0);
}

}  // namespace
}  // namespace keel
