// Lanes: which lanes a worker computes, and in which order their values are added.
// Promises   every sum over the lanes 0 .. lanes-1 is one fixed expression, whatever the number of
//            workers: a binary tree over lane indices, whose node [a, a + 2^k) with a multiple of
//            2^k is left half + right half. If `lanes` is no power of two, the largest nodes that
//            remain are added from left to right.
// Does not   know what is added (trainer/numerics/fold.h).
// Threads    plain values and functions.
#pragma once

#include <compare>
#include <vector>

namespace keel {

struct LaneRange {
  int begin = 0;
  int end = 0;

  int count() const { return end - begin; }
  bool empty() const { return begin == end; }
  auto operator<=>(const LaneRange&) const = default;
};

// Those of worker `rank` of `world` in an even split: [lanes*rank/world, lanes*(rank+1)/world).
// Some workers have none if there are more workers than lanes.
LaneRange LanesOf(int rank, int world, int lanes);

// A node of the tree: the sum of lanes begin .. begin+size-1. `size` is a power of two that divides
// `begin`.
struct LaneNode {
  int begin = 0;
  int size = 1;

  int end() const { return begin + size; }
  auto operator<=>(const LaneNode&) const = default;
};

// Whether left + right is a node of the tree.
bool MakesNode(const LaneNode& left, const LaneNode& right);

// The largest nodes that lie in `range`, in lane order: what its owner can add on its own.
std::vector<LaneNode> NodesOf(const LaneRange& range);

}  // namespace keel
