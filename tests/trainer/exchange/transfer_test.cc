// Transfer: newcomers end up with the bytes of those who have the state.
#include "trainer/exchange/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/random.h"
#include "tests/harness/sanitizers.h"
#include "tests/trainer/crew.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

std::vector<at::Tensor> State(double value) {
  return {at::arange(3'000'000, at::kFloat) * value,
          at::full({7}, value, at::kDouble),
          at::full({}, 3, at::kLong),
          at::full({0}, value),
          (at::arange(24, at::kFloat) * value)
              .view({2, 3, 2, 2})
              .contiguous(at::MemoryFormat::ChannelsLast),
          at::full({100, 11}, value, at::kBFloat16).t(),
          at::full({5}, value > 0, at::kBool)};
}

// By rank, who reads others' memory and lets them read: all, nobody, and all but one.
size_t All(int) { return 1; }
size_t Nobody(int) { return EpochGroup::kNeverRead; }
size_t AllButTheSecond(int rank) { return rank == 1 ? EpochGroup::kNeverRead : 1; }

class TransferAs : public testing::TestWithParam<size_t (*)(int rank)> {
 protected:
  TransferAs() { crew_.read_bytes_min = GetParam(); }
  GroupCrew crew_;
};
constexpr const char* kWhoReads[] = {"AllRead", "NobodyReads", "SomeRead"};
INSTANTIATE_TEST_SUITE_P(Who, TransferAs, testing::Values(All, Nobody, AllButTheSecond),
                         [](const auto& tested) { return kWhoReads[tested.index]; });

TEST_P(TransferAs, NewcomersGetTheBytes) {
  const Digest wanted = DigestOfTensors(State(0.7));
  for (const std::vector<bool>& has_it : std::vector<std::vector<bool>>{
           {true, false}, {false, true}, {true, true, false}, {false, true, false, false},
           {true, false, true, false}, {false, false, false, true, true}}) {
    std::atomic<uint64_t> given{0};   // by all sources
    crew_.Run(static_cast<int>(has_it.size()), [&](EpochGroup& group) {
      const bool has = has_it[static_cast<size_t>(group.rank())];
      const std::vector<at::Tensor> state = State(has ? 0.7 : -1.0);
      uint64_t done = 0;
      uint64_t all = 0;
      const Status moved = Transfer(group, state, has_it, [&](uint64_t bytes, uint64_t in_all) {
        EXPECT_GT(bytes, done);
        done = bytes;
        all = in_all;
      });
      ASSERT_TRUE(moved.ok()) << moved.error().message;
      EXPECT_EQ(DigestOfTensors(state), wanted);
      EXPECT_EQ(done, all);
      if (has) {
        given += all;
      } else {
        EXPECT_GT(all, 12'000'000u);
      }
    });
    EXPECT_GT(given.load(), 12'000'000u);
  }
}

// So that who waits is heard of.
TEST(Transfer, ABigStateIsReadInRounds) {
  constexpr int64_t kCount = 40'000'000;
  GroupCrew crew;
  crew.Run(2, [](EpochGroup& group) {
    const std::vector<at::Tensor> state{at::full({3}, group.rank(), at::kByte),
                                        at::full({kCount}, group.rank(), at::kFloat)};
    int rounds = 0;
    const Status moved = Transfer(group, state, {false, true}, [&](uint64_t done, uint64_t all) {
      ++rounds;
      EXPECT_LE(done, all);
    });
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    EXPECT_EQ(rounds, 3);
    for (const at::Tensor& tensor : state) EXPECT_TRUE(tensor.eq(1).all().item<bool>());
  });
}

TEST(Transfer, ListsThatDifferAreRefusedByAll) {
  GroupCrew crew;
  crew.Run(3, [](EpochGroup& group) {
    const std::vector<at::Tensor> state{at::zeros({group.rank() == 1 ? 5 : 4})};
    const Status moved = Transfer(group, state, {true, false, false});
    ASSERT_FALSE(moved.ok());
    EXPECT_EQ(moved.error().code, Code::kInvalid);
    EXPECT_THAT(moved.error().message, testing::HasSubstr("rank 1"));
  });
}

TEST(Transfer, WithNobodyInNeedNothingMoves) {
  GroupCrew crew;
  crew.Run(2, [](EpochGroup& group) {
    const std::vector<at::Tensor> state = State(group.rank());
    EXPECT_TRUE(Transfer(group, state, {true, true}).ok());
    EXPECT_EQ(DigestOfTensors(state), DigestOfTensors(State(group.rank())));
  });
}

TEST(Transfer, NobodyHavingTheStateIsAnError) {
  GroupCrew crew;
  crew.Run(2, [](EpochGroup& group) {
    EXPECT_EQ(Transfer(group, State(1), {false, false}).error().code, Code::kInvalid);
  });
}

// What the old epoch still had in flight must not touch the tensors any more.
TEST_P(TransferAs, ABreakEndsItAndLeavesTheTensorsAlone) {
  constexpr uint64_t kSeed = 12;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  std::atomic<int> broken{0};
  for (int round = 0; round < Rounds(25, 8); ++round) {
    const auto delay = std::chrono::microseconds(random.Uniform(15000));
    const int victim = static_cast<int>(random.Uniform(3));
    crew_.Run(3, [&](EpochGroup& group) {
      const GroupCrew::Breaker breaker(group, delay, victim);
      const std::vector<at::Tensor> state = State(group.rank() == 0 ? 0.7 : -1.0);
      const Status moved = Transfer(group, state, {true, false, false});
      if (moved.ok()) {
        EXPECT_EQ(DigestOfTensors(state), DigestOfTensors(State(0.7)));
        return;
      }
      ++broken;
      for (const at::Tensor& tensor : state) at::Tensor(tensor).zero_();
      const Digest zeros = DigestOfTensors(state);
      RealClock().SleepFor(std::chrono::milliseconds(5));  // time in which late bytes would arrive
      EXPECT_EQ(DigestOfTensors(state), zeros);
    });
  }
  EXPECT_GT(broken.load(), 0);
  EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(30)));
}

}  // namespace
}  // namespace keel
