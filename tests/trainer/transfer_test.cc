// Transfer: newcomers end up with the bytes of those who have the state.
#include "trainer/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/random.h"
#include "tests/trainer/crew.h"
#include "trainer/tensor_digest.h"

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

TEST(Transfer, NewcomersGetTheBytes) {
  const Digest wanted = DigestOfTensors(State(0.7));
  Crew crew;
  for (const std::vector<bool>& has_it : std::vector<std::vector<bool>>{
           {true, false}, {false, true}, {true, true, false}, {false, true, false, false},
           {true, false, true, false}}) {
    crew.Run(static_cast<int>(has_it.size()), [&](EpochGroup& group) {
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
      EXPECT_GT(all, has ? 0u : 12'000'000u);
    });
  }
}

TEST(Transfer, ListsThatDifferAreRefusedByAll) {
  Crew crew;
  crew.Run(3, [](EpochGroup& group) {
    const std::vector<at::Tensor> state{at::zeros({group.rank() == 1 ? 5 : 4})};
    const Status moved = Transfer(group, state, {true, false, false});
    ASSERT_FALSE(moved.ok());
    EXPECT_EQ(moved.error().code, Code::kInvalid);
    EXPECT_THAT(moved.error().message, testing::HasSubstr("rank 1"));
  });
}

TEST(Transfer, WithNobodyInNeedNothingMoves) {
  Crew crew;
  crew.Run(2, [](EpochGroup& group) {
    const std::vector<at::Tensor> state = State(group.rank());
    EXPECT_TRUE(Transfer(group, state, {true, true}).ok());
    EXPECT_EQ(DigestOfTensors(state), DigestOfTensors(State(group.rank())));
  });
}

TEST(Transfer, NobodyHavingTheStateIsAnError) {
  Crew crew;
  crew.Run(2, [](EpochGroup& group) {
    EXPECT_EQ(Transfer(group, State(1), {false, false}).error().code, Code::kInvalid);
  });
}

// What the old epoch still had in flight must not touch the tensors any more.
TEST(Transfer, ABreakEndsItAndLeavesTheTensorsAlone) {
  constexpr uint64_t kSeed = 12;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  Crew crew;
  std::atomic<int> broken{0};
  for (int round = 0; round < 25; ++round) {
    const auto delay = std::chrono::microseconds(random.Uniform(15000));
    const int victim = static_cast<int>(random.Uniform(3));
    crew.Run(3, [&](EpochGroup& group) {
      const Crew::Breaker breaker(group, delay, victim);
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
