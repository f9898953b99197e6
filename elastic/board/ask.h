// AskPeers: asks other supervisors which board of the job they follow.
// Promises   all are asked at the same time, and the call ends within its limit, or as soon as each
//            has answered or cannot. A store that listens where a supervisor was looked for closes
//            the connection, and is told apart from nobody.
// Does not   decide whom to follow (elastic/decisions/follow.h).
// Threads    any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/decisions/follow.h"
#include "elastic/protocol/records.h"
#include "store/cancel.h"

namespace keel {

struct PeerAnswer {
  enum class Kind {
    kNothing,    // no answer in time
    kRefused,    // nobody listens there
    kStranger,   // something listens, and is no supervisor: most likely a store
    kOtherJob,   // a supervisor of another job
    kUnknown,    // a supervisor of this job, that follows no board
    kSight,      // ... that follows one
  };
  Kind kind = Kind::kNothing;
  PeerSight sight;
};

// `addresses`: numeric, with ports. The answers are in the same order.
std::vector<PeerAnswer> AskPeers(const std::vector<std::string>& addresses, const std::string& job,
                                 Duration limit, const CancelToken& cancel);

// What a supervisor answers; `sight`: nothing where it follows no board.
std::string AnswerText(bool is_our_job, const std::optional<PeerSight>& sight);

}  // namespace keel
