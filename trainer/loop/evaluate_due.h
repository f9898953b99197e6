// EvaluateIfDue: the evaluation that belongs to the step a member has come to, if one does.
// Promises   the program is told the value, or, where a stop cuts it short, nothing: then it is
//            evaluated again from the same step, in a later epoch or by the next start of the job.
//            As that may be so after a death, too, what the program then changes in a buffer is
//            undone.
// Threads    the training thread; all members of the group call it for the same step.
// Errors     those of the group; kInvalid, kNoDevice or kForeign where the program failed.
#pragma once

#include "base/result.h"
#include "trainer/loop/epoch_parts.h"

namespace keel {

bool EvaluationIsDue(const EpochParts& parts);

// False: somebody was told to stop before it had ended, and all members know that.
Result<bool> EvaluateIfDue(const EpochParts& parts);

}  // namespace keel
