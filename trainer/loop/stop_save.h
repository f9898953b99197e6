// StopSave: all members save the state of one step, and nobody goes on before that is over: at the
// job's end, and where somebody is told to stop.
// Promises   all members get the same answer. A save that failed leaves the checkpoints before it.
// Does not   save beside training (trainer/save/checkpointer.h), or alone.
// Threads    one; all members of the group call it at the same step.
// Errors     those of the group; of SaveTogether() also kIo: the state could not be saved.
#pragma once

#include <vector>

#include "base/result.h"
#include "trainer/loop/epoch_parts.h"
#include "trainer/loop/vote_record.h"

namespace keel {

Status SaveTogether(const EpochParts& parts);

// As the votes say that there is time. Who was told to stop stops, saved or not: whether the state
// at this step was saved.
Result<bool> SaveToStop(const EpochParts& parts, const std::vector<VoteRecord>& records);

}  // namespace keel
