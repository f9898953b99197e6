// GatherPlan: which member sends what to which other one, so that each of `size` members has all
// records after ceil(log2 size) rounds (dissemination).
// Promises   a member sends only what it has by then, and receives no record twice. A record
//            leaves its owner first, so a member that holds all records knows that all members
//            have begun.
// Threads    plain values.
#pragma once

#include <vector>

namespace keel {

struct GatherRound {
  int to = 0;
  int from = 0;
  std::vector<int> sends;     // ranks whose records go out, in this order
  std::vector<int> receives;  // ranks whose records come in, in this order
};

std::vector<GatherRound> PlanGather(int rank, int size);

}  // namespace keel
