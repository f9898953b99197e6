// AskPeers: asks other supervisors which board of the job they follow.
// Promises   all are asked at the same time, and the call ends within its limit, or as soon as each
//            has answered or cannot. A store where a supervisor was looked for is told apart from
//            nobody, and takes no harm.
// Does not   decide whom to follow (elastic/decisions/follow.h).
// Threads    any.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "elastic/decisions/follow.h"
#include "elastic/protocol/records.h"
#include "store/cancel.h"

namespace keel {

struct PeerAnswer {
  enum class Kind {
    kNothing,    // no answer in time, or one that is not understood
    kRefused,    // nobody listens there
    kStore,      // a store
    kOtherJob,   // a supervisor of another job
    kUnknown,    // a supervisor of this job, that follows no board
    kSight,      // ... that follows one
  };
  Kind kind = Kind::kNothing;
  PeerSight sight;
};

// Where none of those from the address of that number on has named a board when the limit is over,
// the first of them that does is awaited until `limit`.
struct AskedLonger {
  size_t from = std::numeric_limits<size_t>::max();
  Duration limit{0};
};
// `addresses`: numeric, with ports. The answers are in the same order.
std::vector<PeerAnswer> AskPeers(const std::vector<std::string>& addresses, const std::string& job,
                                 Duration limit, const CancelToken& cancel,
                                 const AskedLonger& longer = {});

// A supervisor is hailed as a store would be (store/store_hail.h), and says first that it is none.
inline constexpr std::string_view kPeerReply = "peer";
// What it answers to the question "ask <job>"; `sight`: nothing where it follows no board.
std::string AnswerText(bool is_our_job, const std::optional<PeerSight>& sight);

}  // namespace keel
