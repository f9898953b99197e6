// StopSave: all members save the state of one step, and none goes on before that is over: at the
// end of the job, and when somebody is told to stop.
// Promises   all members get the same answer. A save that failed leaves the checkpoints before it.
// Does not   save beside training (trainer/save/beside.h), or alone.
// Threads    one; all members of the group call it at the same step.
// Errors     those of the group; SaveTogether() also gives kIo: the state could not be saved.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/loop/epoch_parts.h"
#include "trainer/loop/vote_record.h"
#include "trainer/save/fit.h"

namespace keel {

// `phase`: where the members are meanwhile; after a vote it is a later one.
Status SaveTogether(const EpochParts& parts, Phase phase = Phase::kSaving);

// After SaveTogether(): all wait until the mirror has it, too, and with `all` whatever it is to
// have. Empty: it has, or there is no mirror; else why not, the same for all members. `deadline` is
// asked again and again, by rank 0.
Result<std::string> AwaitMirror(const EpochParts& parts, bool all,
                                const std::function<std::optional<TimePoint>()>& deadline);

// So long a stop of the job may take until it has come to all hosts.
inline constexpr Duration kStopSpread = std::chrono::seconds(1);

// Whether there is time to save before a stop.
StopDecision DecideStopBy(const std::vector<VoteRecord>& records);

// Saves if the votes say that there is time; those that were told to stop do so in any case.
// Returns whether the state of this step was saved.
Result<bool> SaveToStop(const EpochParts& parts, const std::vector<VoteRecord>& records);

}  // namespace keel
