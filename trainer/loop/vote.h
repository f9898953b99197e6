// Vote: the small all-gather that decides a step for all or for none.
// Promises   a worker that got the records knows that every worker had entered the vote of this
//            very step. So let workers enter with complete reduced gradients only: where one
//            worker's vote succeeds, each survivor holds the gradients of that step.
// Does not   tell what became of the others' votes: after an error the step is decided by the
//            reports in the next epoch.
// Threads    one at a time per group.
// Errors     those of the group; kStaleEpoch where a worker votes on another step, kCorrupt. The
//            group is aborted then.
#pragma once

#include <vector>

#include "base/result.h"
#include "trainer/loop/vote_record.h"

namespace keel {

class EpochGroup;

// `lanes`: of the whole job; `record.losses` holds those of this worker. The records by rank.
Result<std::vector<VoteRecord>> Vote(EpochGroup& group, const VoteRecord& record, int lanes);

}  // namespace keel
