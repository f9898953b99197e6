// The arithmetic of lanes.
#include "trainer/numerics/lanes.h"

#include <cstdint>

#include "base/check.h"

namespace keel {

LaneRange LanesOf(int rank, int world, int lanes) {
  KEEL_CHECK(world > 0 && rank >= 0 && rank < world && lanes >= 0,
             "rank=" << rank << " world=" << world << " lanes=" << lanes);
  const int64_t all = lanes;
  return {static_cast<int>(all * rank / world), static_cast<int>(all * (rank + 1) / world)};
}

bool MakesNode(const LaneNode& left, const LaneNode& right) {
  return left.size == right.size && left.end() == right.begin &&
         left.begin % (2 * int64_t{left.size}) == 0;
}

std::vector<LaneNode> NodesOf(const LaneRange& range) {
  std::vector<LaneNode> nodes;
  for (int begin = range.begin; begin < range.end;) {
    int64_t size = 1;
    while (begin % (2 * size) == 0 && begin + 2 * size <= range.end) size *= 2;
    nodes.push_back({begin, static_cast<int>(size)});
    begin += static_cast<int>(size);
  }
  return nodes;
}

}  // namespace keel
