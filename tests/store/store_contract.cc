// What every Store must do.
#include "tests/store/store_contract.h"

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/sanitizers.h"

namespace keel {

TEST_P(StoreContract, ReturnsWhatWasSet) {
  ASSERT_TRUE(store_->Set("a", "one").ok());
  EXPECT_EQ(*store_->Get("a"), "one");
  ASSERT_TRUE(store_->Set("a", "two").ok());
  EXPECT_EQ(*store_->Get("a"), "two");
}

TEST_P(StoreContract, AnAbsentKeyIsNothingAndDoesNotWait) {
  EXPECT_EQ(*store_->Get("nobody"), std::nullopt);
}

TEST_P(StoreContract, AnEmptyValueIsAValue) {
  ASSERT_TRUE(store_->Set("empty", "").ok());
  EXPECT_EQ(*store_->Get("empty"), "");
}

TEST_P(StoreContract, KeepsBytesAsTheyAre) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  ASSERT_TRUE(store_->Set("bytes", bytes).ok());
  EXPECT_EQ(*store_->Get("bytes"), bytes);
}

TEST_P(StoreContract, TakesTheLargestValueAndRefusesALargerOne) {
  const std::string largest(board_->value_bytes_max(), 'x');
  ASSERT_TRUE(store_->Set("large", largest).ok());
  EXPECT_EQ(store_->Get("large")->value().size(), largest.size());
  const Status refused = store_->Set("large", largest + "x");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_EQ(store_->Get("large")->value().size(), largest.size());
}

TEST_P(StoreContract, RefusesEmptyAndOverlongKeys) {
  EXPECT_EQ(store_->Set("", "x").error().code, Code::kInvalid);
  EXPECT_EQ(store_->Get(std::string(kStoreKeyBytesMax + 1, 'k')).error().code, Code::kInvalid);
}

TEST_P(StoreContract, ReadsManyKeysWithTheAbsentOnesMarked) {
  ASSERT_TRUE(store_->Set("m/1", "one").ok());
  ASSERT_TRUE(store_->Set("m/3", "three").ok());
  EXPECT_TRUE(*store_->Has("m/1"));
  EXPECT_FALSE(*store_->Has("m/2"));
  const auto some = store_->GetMany({"m/1", "m/2", "m/3"});
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_THAT(*some, testing::ElementsAre("one", std::nullopt, "three"));
  ASSERT_TRUE(store_->Set("m/2", "two").ok());
  EXPECT_THAT(*store_->GetMany({"m/1", "m/2", "m/3"}), testing::ElementsAre("one", "two", "three"));
  EXPECT_TRUE(store_->GetMany({})->empty());
}

TEST_P(StoreContract, ReadsManyKeysWhereverSomeAreAbsent) {
  std::vector<std::string> keys;
  std::vector<std::optional<std::string>> expected;
  for (int i = 0; i < 100; ++i) {
    keys.push_back("w/" + std::to_string(i));
    if (i % 37 == 5 || i == 99) {
      expected.push_back(std::nullopt);
      continue;
    }
    expected.push_back(std::to_string(i));
    ASSERT_TRUE(store_->Set(keys.back(), *expected.back()).ok());
  }
  const auto read = store_->GetMany(keys);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, expected);
}

TEST_P(StoreContract, AddsFromNothing) {
  EXPECT_EQ(*store_->Add("n", 5), 5);
  EXPECT_EQ(*store_->Add("n", -2), 3);
  EXPECT_EQ(*store_->Add("n", 0), 3);
}

TEST_P(StoreContract, AddingIsAtomicAmongClients) {
  constexpr int kClients = 4;
  constexpr int kRounds = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([client = board_->Client()] {
      for (int round = 0; round < kRounds; ++round) EXPECT_TRUE(client->Add("sum", 1).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*store_->Add("sum", 0), kClients * kRounds);
}

TEST_P(StoreContract, CompareSetWritesOnlyOverWhatWasExpected) {
  ASSERT_TRUE(store_->Set("leader", "a").ok());
  const auto lost = store_->CompareSet("leader", "b", "c");
  ASSERT_TRUE(lost.ok()) << lost.error().message;
  EXPECT_FALSE(lost->holds_desired);
  EXPECT_EQ(lost->now, "a");
  const auto won = store_->CompareSet("leader", "a", "c");
  EXPECT_TRUE(won->holds_desired);
  EXPECT_EQ(*store_->Get("leader"), "c");
}

// c10d answers here as if the key held what was expected.
TEST_P(StoreContract, CompareSetOfAnAbsentKeySaysThatItIsAbsent) {
  const auto lost = store_->CompareSet("nobody", "believed", "mine");
  ASSERT_TRUE(lost.ok()) << lost.error().message;
  EXPECT_FALSE(lost->holds_desired);
  EXPECT_EQ(lost->now, std::nullopt);
  EXPECT_EQ(*store_->Get("nobody"), std::nullopt);
}

TEST_P(StoreContract, CompareSetFromNothingCreatesOnce) {
  EXPECT_TRUE(store_->CompareSet("first", std::nullopt, "me")->holds_desired);
  const auto second = store_->CompareSet("first", std::nullopt, "you");
  EXPECT_FALSE(second->holds_desired);
  EXPECT_EQ(second->now, "me");
}

TEST_P(StoreContract, CompareSetToTheSameValueOnlyLooks) {
  const auto absent = store_->CompareSet("same", "x", "x");
  EXPECT_FALSE(absent->holds_desired);
  EXPECT_EQ(absent->now, std::nullopt);
  ASSERT_TRUE(store_->Set("same", "x").ok());
  EXPECT_TRUE(store_->CompareSet("same", "x", "x")->holds_desired);
}

TEST_P(StoreContract, OneOfManyCompetitorsWins) {
  constexpr int kClients = 6;
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i, client = board_->Client()] {
      const auto outcome = client->CompareSet("race", std::nullopt, "client " + std::to_string(i));
      if (outcome.ok() && outcome->holds_desired) ++winners;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(StoreContract, DeletesAndSaysWhetherItWasThere) {
  ASSERT_TRUE(store_->Set("gone", "x").ok());
  EXPECT_TRUE(*store_->Delete("gone"));
  EXPECT_FALSE(*store_->Delete("gone"));
  EXPECT_EQ(*store_->Get("gone"), std::nullopt);
}

TEST_P(StoreContract, WaitEndsWhenTheLastKeyIsSet) {
  ASSERT_TRUE(store_->Set("w/1", "x").ok());
  std::thread setter([client = board_->Client()] { EXPECT_TRUE(client->Set("w/2", "x").ok()); });
  const Status waited = store_->Wait({"w/1", "w/2"}, kTestLimit);
  EXPECT_TRUE(waited.ok()) << waited.error().message;
  setter.join();
}

// c10d's server wakes those who wait for a key also where it was only asked for.
TEST_P(StoreContract, WhoLooksForAMissingKeyEndsNobodysWaitForIt) {
  const std::unique_ptr<Store> other = board_->Client();
  std::optional<std::string> seen;
  std::thread waiter([&] {
    EXPECT_TRUE(other->Wait({"w/missing"}, kTestLimit).ok());
    seen = other->Get("w/missing").value();
  });
  for (int i = 0; i < 300; ++i) EXPECT_EQ(*store_->Get("w/missing"), std::nullopt);
  EXPECT_TRUE(store_->Set("w/missing", "here").ok());
  waiter.join();
  EXPECT_EQ(seen, "here");
}

TEST_P(StoreContract, WaitThatTimesOutNamesWhatIsMissingAndHarmsNothing) {
  ASSERT_TRUE(store_->Set("t/1", "x").ok());
  const Status waited = store_->Wait({"t/1", "t/2", "t/3"}, std::chrono::milliseconds(30));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::kTimeout);
  EXPECT_THAT(waited.error().message, testing::HasSubstr("2 of 3 store keys: t/2, t/3"));
  EXPECT_EQ(*store_->Get("t/1"), "x");
}

TEST_P(StoreContract, WaitCanBeCancelled) {
  const CancelToken cancel;
  std::thread canceller([&] {
    RealClock().SleepFor(std::chrono::milliseconds(20));
    cancel.Cancel();
  });
  const Status waited = store_->Wait({"never"}, kTestLimit * 10, cancel);
  canceller.join();
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::kCancelled);
  EXPECT_TRUE(store_->Set("after", "x").ok());
}

TEST_P(StoreContract, ACancelledTokenEndsAWaitBeforeItBegins) {
  const CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(store_->Wait({"never"}, kTestLimit, cancel).error().code, Code::kCancelled);
}

TEST_P(StoreContract, AWaitingCloneDoesNotHoldUpTheOriginal) {
  auto clone = store_->Clone();
  ASSERT_TRUE(clone.ok()) << clone.error().message;
  const CancelToken cancel;
  std::thread waiter([&] { EXPECT_TRUE((*clone)->Wait({"c"}, kTestLimit, cancel).ok()); });
  EXPECT_TRUE(store_->Set("c", "x").ok());
  waiter.join();
}

// A stretch of a wait that ends just as its key is set is where client and server could lose step.
TEST_P(StoreContract, ManyWaitsRacingWithTheirKeysStayInStep) {
  constexpr int kRounds = Rounds(300, 100);
  const CancelToken never_cancelled;
  std::thread setter([client = board_->Client()] {
    for (int i = 0; i < kRounds; ++i) {
      const std::string n = std::to_string(i);
      EXPECT_TRUE(client->Wait({"ready/" + n}, kTestLimit).ok());
      RealClock().SleepFor(std::chrono::microseconds(i * 37 % 3000));
      EXPECT_TRUE(client->Set("race/" + n, n).ok());
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const std::string n = std::to_string(i);
    ASSERT_TRUE(store_->Set("ready/" + n, "x").ok());
    // Limits of 1 and 2 ms end before, while and after the key is set.
    (void)store_->Wait({"race/" + n}, std::chrono::milliseconds(1 + i % 2), never_cancelled);
    const Status waited = store_->Wait({"race/" + n}, kTestLimit, never_cancelled);
    ASSERT_TRUE(waited.ok()) << i << ": " << waited.error().message;
    ASSERT_EQ(*store_->Get("race/" + n), n);
  }
  setter.join();
}

}  // namespace keel
