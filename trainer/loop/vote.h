// Vote: the small all-gather that decides a step for all or for none.
// Promises   a worker that got the records knows that every worker had entered the vote on this
//            very step. So a worker must enter only with complete reduced gradients: if one
//            worker's vote succeeds, each survivor holds the gradients of that step.
// Does not   tell what became of the others' votes: after an error, the reports of the next epoch
//            decide the step.
// Threads    one at a time per group.
// Errors     those of the group; kStaleEpoch: a worker votes on another step; kCorrupt. Each
//            aborts the group.
#pragma once

#include <vector>

#include "base/result.h"
#include "trainer/loop/vote_record.h"
#include "trainer/numerics/placement.h"

namespace keel {

class EpochGroup;

// `record.losses` holds those of this worker's lanes. Returns the records by rank.
Result<std::vector<VoteRecord>> Vote(EpochGroup& group, const VoteRecord& record,
                                     const Placement& placement);

// After the votes, or the digests, by which all know that the epoch ends. Once all have arrived,
// everybody has those, and a member that is lost or late no longer matters.
void PartInOrder(EpochGroup& group);

}  // namespace keel
