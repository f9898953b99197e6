// Quorum: whether these hosts may form the next epoch, or whether others could go on without them.
//
// Between the moment in which an epoch is written and the one in which its group is known to stand,
// nobody can tell whether it runs. So a new epoch needs more than half of the hosts of the newest
// epoch that anybody here has met, and also of each that anybody here was put into since without
// having met it; and of the one that this very board has formed last, which may be of others only.
// Any two such sets share a host, and that host is in one epoch at a time.
//
// Promises   if every epoch is formed by this rule, no two epochs run at once, whatever messages
//            are lost and whatever clocks do, but for `beat_limit`: there, the clocks of two hosts
//            must pass at about the same rate. tests/elastic/decisions/quorum_walk_test.cc looks
//            for a counterexample.
// Does not   judge whether enough hosts are here for the user (membership.h), who may open a board,
//            or what a lease allows where there is no quorum.
// Needs      of its caller: a board that was left is never opened again. No epoch that is older
//            than a host's slot names it there. An epoch is formed once each host that is here has
//            promised to be outside all that this board has formed before (membership.h), and what
//            a host tells is as new as its promise. The number of an epoch is at least that of the
//            verdict, and higher than that of all others on its board.
// Threads    pure functions over plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/protocol/limits.h"
#include "elastic/protocol/records.h"

namespace keel {

// Hosts are named by their incarnations throughout.
struct HostPast {
  std::string host;
  EpochsSeen seen;
};

struct QuorumView {
  std::vector<HostPast> here = {};        // those registered on this board
  std::vector<HostPast> gone = {};        // those that left or died while registered on this very
                                          // board
  std::vector<CountedEpoch> epochs = {};  // each that is named above, once
  std::optional<CountedEpoch> formed = {};   // the newest that this board has formed itself
  Duration beat_limit = kBeatLimit;       // a coordinator drops no host sooner
};

enum class QuorumReason {
  kFirst,          // nobody here was in any epoch
  kMajority,       // more than half of each
  kCastingVote,    // just half of at least one, with its coordinator, or the heir of its vote
  kTooFew,         // not formed
  kUnknownEpoch,   // not formed: an epoch is named whose hosts nobody has told
};

struct QuorumVerdict {
  bool may_form = false;
  QuorumReason reason = QuorumReason::kTooFew;
  std::string detail;                // "1 of 3 hosts of epoch 7 (needed: 2)"
  int64_t number = 1;                // of the epoch to be formed, at least
  std::vector<std::string> missing;  // kTooFew: those of the hosts counted that are not among them
  std::vector<std::string> counted;  // the epochs that count, by their ids
};

// `proposed`: the hosts of the new epoch, all of which are in `view.here`.
QuorumVerdict DecideQuorum(const QuorumView& view, const std::vector<std::string>& proposed);

}  // namespace keel
