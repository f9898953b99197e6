// Claiming: what a host does about the coordinator's role where that hangs on a claim in a place
// that needs no host (PROTOCOL.md section 12, "Where no host keeps the board").
// Promises   the same view gives the same step, with a reason in words. A host follows the board of
//            the highest term, and claims a higher one only if the role is free, if it is asked to,
//            or if the holder's process is known to be dead; the heirs do so one after the other,
//            and all others after them.
// Does not   make a claim safe: the place does, by ending the claim before it in the same step.
//            Look, connect or claim: elastic/board/claimed_finder.h does.
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

// The highest claim of the role that was ever made.
struct RoleClaim {
  int64_t term = 0;
  std::string by = {};       // incarnation of its holder
  std::string peer = {};     // where that one listens
  std::string board = {};    // what its place needs to find the board of that term
  bool has_ended = false;    // it was made to say that the job is over
  bool is_alive = false;     // it is in force: neither released nor over
  bool operator==(const RoleClaim&) const = default;
};

struct ClaimView {
  std::string self;                    // incarnation
  int64_t followed = 0;                // the term of the board that is followed; 0: none was
  std::optional<RoleClaim> seen = {};  // nothing: there was none ever
  std::vector<Heir> heirs = {};        // as the board that is followed names them
  bool is_asked = false;               // its coordinator leaves, and asks this host
  bool is_dead = false;                // its coordinator's process is, as its machine says
  std::optional<TimePoint> free_since = {};   // since when this host knows that the role is free
  bool may_claim = true;               // this host is not about to end
};

struct ClaimStep {
  enum class Verdict {
    kStay,     // with the board that is followed
    kFollow,   // the board of the claim that was seen
    kClaim,    // that term
    kWait,     // for others to claim; look again soon
    kOver,     // the job has ended
  };
  Verdict verdict = Verdict::kWait;
  int64_t term = 0;                    // kClaim
  std::string detail;
};

ClaimStep DecideClaim(const ClaimView& view, TimePoint now);

}  // namespace keel
