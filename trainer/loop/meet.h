// Meet: the members of a new epoch come to the same state. They report what they hold; if nobody
// holds a state, one begins from a checkpoint; those that lack it receive it, or begin to catch up
// (trainer/loop/catch_up.h); and all compare.
// Promises   when it succeeded and nobody was refused, all members that do not catch up hold the
//            same bits, at a step that all know to be decided. What the steps they made together
//            prove is compared only by the next steps, if it is large.
// Does not   make a step, except one that was decided in the epoch before.
// Threads    one; all members call it once, as the first thing of an epoch.
// Errors     those of the group; those of HeldBits, where states differ; those of the program's
//            on_step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/loop/epoch_parts.h"
#include "trainer/numerics/placement.h"

namespace keel {

// Applies a step whose gradients are pending, once the losses of all its lanes are known.
using ApplyPending = std::function<Status(const std::vector<float>& lane_losses)>;

struct Met {
  std::string refused;    // why nobody, or not this member, may begin; empty: all may
  // How many pieces of the state the next steps shall compare, from the last one to the first: the
  // optimizer's before the parameters, which it changes. 0: all of it was compared.
  uint64_t pieces = 0;
  // By rank, who begins to catch up with the others; empty: nobody.
  std::vector<bool> catching_up;
  int64_t doubts = 0;          // of the first step (MemberReport)
  int64_t recheck_every = 0;   // for all (ReformPlan)
  bool unproven = false;       // somebody is (MemberReport)
  bool alike = false;          // all compute alike, and hold the same bits
  PlacementCosts costs;   // as the members know them from epochs before
};
Result<Met> Meet(const EpochParts& parts, const ApplyPending& apply);

}  // namespace keel
