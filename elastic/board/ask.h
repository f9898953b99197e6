// AskPeers: asks other supervisors which board of the job they follow.
// Promises   all are asked at the same time, and the call ends within its limit, or as soon as each
//            has answered or cannot. A store where a supervisor was looked for is told apart from
//            nobody, and takes no harm. Where the job has a token, an answer counts only if it has
//            the seal of it for this very question; others are told in the log.
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
#include "store/seal/seal.h"

namespace keel {

struct PeerAnswer {
  enum class Kind {
    kNothing,    // no answer in time, or one that is not understood
    kRefused,    // nobody listens there
    kStore,      // a store
    kOtherJob,   // a supervisor of another job
    kClosed,     // a supervisor that has another token than this one, or where one of both has none
    kUnknown,    // a supervisor of this job, that follows no board
    kSight,      // ... that follows one
    kVouches,    // ... that keeps the board of the generation that was asked for
  };
  Kind kind = Kind::kNothing;
  PeerSight sight;
};

struct PeerQuestion {
  std::string job;
  std::optional<Seal> seal = {};   // of its token; nothing: it has none, and anybody is believed
  // With a token: not which board is followed, but whether this one is kept.
  std::string generation = {};
};

// Where none of those from the address of that number on has named a board when the limit is over,
// the first of them that does is awaited until `limit`.
struct AskedLonger {
  size_t from = std::numeric_limits<size_t>::max();
  Duration limit{0};
};
// `addresses`: numeric, with ports. The answers are in the same order.
std::vector<PeerAnswer> AskPeers(const std::vector<std::string>& addresses,
                                 const PeerQuestion& question, Duration limit,
                                 const CancelToken& cancel, const AskedLonger& longer = {});

// Whether the supervisor at that address keeps the board of that generation, now. That can be told
// only where the job has a token.
bool Vouches(const std::string& address, const std::string& generation, const Seal& seal,
             Duration limit, const CancelToken& cancel);

// A supervisor is hailed as a store would be (store/store_hail.h), and says first that it is none.
inline constexpr std::string_view kPeerReply = "peer";
// The question is "ask <job>".
inline constexpr std::string_view kAsk = "ask ";
// What it answers to that; `sight`: nothing where it follows no board.
std::string AnswerText(bool is_our_job, const std::optional<PeerSight>& sight);

}  // namespace keel
