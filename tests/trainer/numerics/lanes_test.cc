// Lanes: the sum over lanes is the same expression for every number of workers.
#include "trainer/numerics/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "trainer/numerics/fold.h"

namespace keel {
namespace {

std::string Plus(const std::string& left, const std::string& right) {
  return "(" + left + "+" + right + ")";
}

// The tree as design and header define it, top down and without any stack.
std::string NodeText(int begin, int size) {
  if (size == 1) return std::to_string(begin);
  return Plus(NodeText(begin, size / 2), NodeText(begin + size / 2, size / 2));
}

std::string WholeText(int lanes) {
  std::string sum;
  for (int begin = 0; begin < lanes;) {
    const int size = static_cast<int>(std::bit_floor(static_cast<unsigned>(lanes - begin)));
    const std::string node = NodeText(begin, size);
    sum = begin == 0 ? node : Plus(sum, node);
    begin += size;
  }
  return sum;
}

FoldStack<std::string> FoldOfWorker(const LaneRange& range) {
  FoldStack<std::string> stack;
  for (int lane = range.begin; lane < range.end; ++lane) {
    stack.Push({lane, 1}, std::to_string(lane), Plus);
  }
  return stack;
}

std::string SumOfWorkers(int world, int lanes) {
  FoldStack<std::string> owner;
  for (int rank = 0; rank < world; ++rank) {
    const FoldStack<std::string> worker = FoldOfWorker(LanesOf(rank, world, lanes));
    for (const auto& entry : worker.entries()) {
      owner.Push(entry.node, entry.value, Plus);
    }
  }
  return owner.Finish(Plus);
}

TEST(Lanes, RangesCoverAllLanesInOrder) {
  for (int lanes = 0; lanes <= 64; ++lanes) {
    for (int world = 1; world <= 12; ++world) {
      int next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const LaneRange range = LanesOf(rank, world, lanes);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.count(), lanes / world);
        EXPECT_LE(range.count(), lanes / world + 1);
        next = range.end;
      }
      EXPECT_EQ(next, lanes);
    }
  }
}

TEST(Lanes, TheSumIsTheSameExpressionForEveryNumberOfWorkers) {
  int compared = 0;
  for (int lanes = 1; lanes <= 64; ++lanes) {
    const std::string whole = WholeText(lanes);
    for (int world = 1; world <= 12; ++world, ++compared) {
      EXPECT_EQ(SumOfWorkers(world, lanes), whole) << lanes << " lanes, " << world << " workers";
    }
  }
  EXPECT_EQ(compared, 64 * 12);
}

TEST(Lanes, NodesAreWhatAWorkerIsLeftWith) {
  for (int begin = 0; begin <= 64; ++begin) {
    for (int end = begin; end <= 64; ++end) {
      std::vector<LaneNode> left;
      const FoldStack<std::string> stack = FoldOfWorker({begin, end});
      for (const auto& entry : stack.entries()) left.push_back(entry.node);
      EXPECT_EQ(NodesOf({begin, end}), left) << begin << ".." << end;
    }
  }
}

TEST(Lanes, GoldenNodes) {
  EXPECT_THAT(NodesOf({3, 12}),
              testing::ElementsAre(LaneNode{3, 1}, LaneNode{4, 4}, LaneNode{8, 4}));
  EXPECT_TRUE(NodesOf({5, 5}).empty());
  EXPECT_EQ(WholeText(7), "((((0+1)+(2+3))+(4+5))+6)");
}

TEST(FoldStack, HoldsNoMoreThanADigitOfTheCounterEach) {
  FoldStack<std::string> stack;
  for (int lane = 0; lane < 64; ++lane) {
    stack.Push({lane, 1}, "x", Plus);
    EXPECT_EQ(stack.entries().size(), std::popcount(static_cast<unsigned>(lane + 1)));
  }
}

}  // namespace
}  // namespace keel
