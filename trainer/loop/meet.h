// Meet: the members of a new epoch come to the same state. They report what they hold; if nobody
// holds a state, one begins from a checkpoint; those that lack it receive it; and all compare.
// Promises   when it succeeded and nobody was refused, all members hold the same bits, at a step
//            that all know to be decided.
// Does not   make a step, except one that was decided in the epoch before.
// Threads    one; all members call it once, as the first thing of an epoch.
// Errors     those of the group; kCorrupt: the states differ; those of the program's on_step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/loop/epoch_parts.h"

namespace keel {

// Applies a step whose gradients are pending, once the losses of all its lanes are known.
using ApplyPending = std::function<Status(const std::vector<float>& lane_losses)>;

// Empty, or the reason why nobody, or not this member, may begin.
Result<std::string> Meet(const EpochParts& parts, const ApplyPending& apply);

}  // namespace keel
