// The memory twin keeps the contract, and its faults strike as planned.
#include "store/memory_store.h"

#include <thread>

#include "tests/store/store_contract.h"

namespace keel {
namespace {

class MemoryTestBoard : public TestBoard {
 public:
  std::unique_ptr<Store> Client() override { return board_.Connect("test"); }

 private:
  MemoryBoard board_{RealClock()};
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreContract, testing::Values(MakeBoard([] {
                           return std::make_unique<MemoryTestBoard>();
                         })));

class MemoryFaults : public testing::Test {
 protected:
  MemoryBoard board_{RealClock()};
  const std::unique_ptr<Store> a_ = board_.Connect("a");
  const std::unique_ptr<Store> b_ = board_.Connect("b");
};

TEST_F(MemoryFaults, ALostRequestIsNotApplied) {
  board_.PlanFault("a", 0, StoreFault::kRequestLost);
  EXPECT_EQ(a_->Add("n", 1).error().code, Code::kTimeout);
  EXPECT_EQ(*a_->Add("n", 1), 1);
}

TEST_F(MemoryFaults, ALostReplyIsApplied) {
  board_.PlanFault("a", 0, StoreFault::kReplyLost);
  EXPECT_EQ(a_->Add("n", 1).error().code, Code::kTimeout);
  EXPECT_EQ(*a_->Add("n", 1), 2);
}

TEST_F(MemoryFaults, StrikesTheOperationItWasPlannedForAndNoOtherClient) {
  board_.PlanFault("a", 2, StoreFault::kCut);
  EXPECT_TRUE(a_->Set("1", "x").ok());
  EXPECT_TRUE(b_->Set("2", "x").ok());
  EXPECT_TRUE(a_->Set("3", "x").ok());
  EXPECT_EQ(a_->Set("4", "x").error().code, Code::kPeerLost);
  EXPECT_EQ(a_->Get("1").error().code, Code::kPeerLost);
  EXPECT_EQ(a_->Clone().error().code, Code::kPeerLost);
  EXPECT_EQ(*b_->Get("4"), std::nullopt);
}

TEST_F(MemoryFaults, ACutClientMayConnectAgain) {
  board_.Cut("a");
  EXPECT_EQ(a_->Get("1").error().code, Code::kPeerLost);
  EXPECT_TRUE(b_->Set("1", "x").ok());
  EXPECT_EQ(*board_.Connect("a")->Get("1"), "x");
}

TEST_F(MemoryFaults, CuttingWakesAWaiter) {
  std::thread waiter([&] {
    EXPECT_EQ(a_->Wait({"never"}, kTestLimit * 10).error().code, Code::kPeerLost);
  });
  RealClock().SleepFor(std::chrono::milliseconds(5));
  board_.CutAll();
  waiter.join();
}

TEST_F(MemoryFaults, ARestartedHostIsEmptyAndKnowsNobody) {
  ASSERT_TRUE(a_->Set("1", "x").ok());
  board_.Restart();
  EXPECT_EQ(b_->Get("1").error().code, Code::kPeerLost);
  EXPECT_EQ(*board_.Connect("b")->Get("1"), std::nullopt);
  EXPECT_EQ(board_.KeyCount(), 0u);
}

// The simulator's case: nobody advances the clock, so nothing may time out; then it is advanced.
TEST(MemoryBoard, TimePassesOnlyThroughItsClock) {
  ManualClock clock;
  MemoryBoard board(clock);
  const auto store = board.Connect("a");
  std::thread waiter([&] {
    EXPECT_EQ(store->Wait({"never"}, std::chrono::hours(1)).error().code, Code::kTimeout);
  });
  while (board.OperationCount() == 0)
    std::this_thread::yield();  // until it has looked at the clock
  clock.Advance(std::chrono::hours(2));
  waiter.join();
}

}  // namespace
}  // namespace keel
