// Placement: which lanes each worker of a group computes, and which choice takes least time.
// No bit depends on it. A range that is one node of the tree (trainer/numerics/lanes.h) is sent as
// one sum; 8 lanes on 3 workers as 3+3+2 are five nodes, as 4+2+2 three.
// Promises   a placement covers all lanes once, in the order of ranks. Each worker has one lane or
//            more, if there are enough. The same costs give the same choice on every machine: it is
//            made in whole numbers.
// Does not   measure anything (trainer/loop/lane_placer.h).
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/numerics/lanes.h"

namespace keel {

using Placement = std::vector<LaneRange>;   // by rank

// As LanesOf() shares them.
Placement EvenPlacement(int world, int lanes);

// "4+2+2"
std::string PlacementText(const Placement& placement);

// What the busiest worker sends, or receives, in a step, in gradients of the whole model divided by
// the number of workers: its nodes but for its own slice, and the sums. 2 (world - 1), as with a
// ring all-reduce, where each worker ships one node.
int64_t BusiestLink(const Placement& placement);

struct PlacementCosts {
  std::vector<int64_t> lane_ns;   // by rank: what one lane takes there; 0: not known
  // What the busiest link takes for one whole model's gradients, beyond what computing hides; 0:
  // not known.
  int64_t link_ns = 0;
};

// Of a step: the slowest worker's lanes, then the busiest link. All lanes' costs must be known.
int64_t StepTimeOf(const Placement& placement, const PlacementCosts& costs);

// What is not known is taken to be as with the others. If nothing is known, no worker gets more
// lanes than an even split gives the busiest one; of those choices, the one that ships least.
PlacementCosts Completed(const PlacementCosts& known);

Placement BestPlacement(int lanes, const PlacementCosts& costs);

// The lanes of a placement of some workers, by rank of all: the others have none.
Placement SpreadOver(const std::vector<bool>& takes_part, const Placement& theirs);
// What is known of those.
PlacementCosts CostsOf(const std::vector<bool>& takes_part, const PlacementCosts& all);

}  // namespace keel
