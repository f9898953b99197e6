// Vote: everybody hears everybody, or an error.
#include "trainer/loop/vote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/trainer/crew.h"
#include "trainer/numerics/lanes.h"

namespace keel {
namespace {

VoteRecord RecordOf(int rank, int size, int lanes, int64_t step) {
  VoteRecord record;
  record.step = step;
  record.stop = rank == 1;
  record.compute_ns = 1000 * rank + step;
  if (step % 2 == 0) record.deadline_ms = rank;
  const LaneRange own = LanesOf(rank, size, lanes);
  for (int lane = own.begin; lane < own.end; ++lane) record.losses.push_back(lane + 0.25);
  return record;
}

TEST(Vote, EverybodyHearsEverybody) {
  GroupCrew crew;
  for (const int size : {1, 2, 3, 5, 6}) {
    for (const int lanes : {1, 8}) {
      crew.Run(size, [&](EpochGroup& group) {
        for (int64_t step = 0; step < 20; ++step) {
          const VoteRecord own = RecordOf(group.rank(), size, lanes, step);
          const auto all = Vote(group, own, EvenPlacement(size, lanes));
          ASSERT_TRUE(all.ok()) << all.error().message;
          for (int rank = 0; rank < size; ++rank) {
            EXPECT_EQ((*all)[static_cast<size_t>(rank)], RecordOf(rank, size, lanes, step));
          }
        }
      });
    }
  }
}

TEST(Vote, SucceedsForNobodyWhereOneDoesNotEnter) {
  for (const int size : {2, 3, 4, 5}) {
    GroupCrew crew;
    std::atomic<int> succeeded{0};
    crew.Run(size, [&](EpochGroup& group) {
      if (group.rank() == size - 1) return;
      if (Vote(group, RecordOf(group.rank(), size, 4, 3), EvenPlacement(size, 4)).ok()) ++succeeded;
    });
    EXPECT_EQ(succeeded.load(), 0);
  }
}

TEST(Vote, OnAnotherStepIsAnErrorThatNamesBoth) {
  GroupCrew crew;
  crew.Run(2, [](EpochGroup& group) {
    const VoteRecord own = RecordOf(group.rank(), 2, 4, 5 + group.rank());
    const auto all = Vote(group, own, EvenPlacement(2, 4));
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.error().code, Code::kStaleEpoch);
    EXPECT_THAT(all.error().message, testing::HasSubstr("votes on step"));
    EXPECT_FALSE(group.status().ok());
  });
}

}  // namespace
}  // namespace keel
