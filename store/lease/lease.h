// Lease: who may act as the coordinator of a job, in a place that outlives every host of it.
//
// A coordinatorship has a number, its term. Whoever claims the next term holds the lease, and that
// number is the fencing token: what is marked with a lower term than the highest is void. Times
// prove nothing; they only decide when it is worth trying (lease_times.h).
//
// Promises   of all that claim one term, in any process on any host, at most one ever gets Ok. The
//            highest term never falls. A claim is seen whole or not at all.
// Does not   stop a holder that stands still for a while: its next Beat() tells it that it has lost
//            the lease, and until then what it does must be checked where it takes effect. Read
//            what is newest: Look() may be as late as caches on the way are; Claim() decides by
//            what is there.
// Threads    one at a time.
// Errors     of Claim() and Beat(): kExists, the term has another holder; kStaleEpoch, a higher
//            term is claimed. Of all: kInvalid, the place is another job's, or cannot hold a lease
//            since it is not atomic; kNoSpace, kNotFound, kIo, kTimeout or kPeerLost: it cannot be
//            used or reached just now. After one of these a call may or may not have had its
//            effect.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace keel {

inline constexpr int64_t kLeaseTermMax = 1'000'000'000'000;
inline constexpr size_t kLeaseTextBytesMax = 4096;

// Who claims. Two runs of one job may have the same name, by mistake or one after the other.
struct LeaseOwner {
  std::string job;   // its name, which its lease is bound to
  std::string run;   // an id that no other run has; all members of one run know it
};

struct LeaseSight {
  int64_t term = 0;       // the highest that is claimed; 0: none is
  std::string run;        // of its holder
  std::string text;       // what its holder gave to Claim()
  std::string damage;     // why `run` and `text` are unknown; the term is claimed all the same
  std::string beat;       // another one after each Beat(); empty before the first
  bool released = false;  // its holder is done

  bool operator==(const LeaseSight&) const = default;
};

class Lease {
 public:
  Lease() = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  virtual ~Lease() = default;

  // Takes the term if nobody has it and none is higher. A term that was taken, and followed by a
  // higher one before this call could see that it was, is nobody's: kStaleEpoch. After an error of
  // which the outcome is unknown, the same call may be repeated: a claim of one's own is found
  // again, and is Ok. `text` is UTF-8.
  virtual Status Claim(int64_t term, const std::string& text) = 0;

  // Shows that the holder of the term that was claimed last is there. Ok: the beat is in place, and
  // after that no higher term was.
  virtual Status Beat() = 0;

  // Needs no claim.
  virtual Result<LeaseSight> Look() = 0;

  // The term that was claimed last is free: whoever sees that may claim the next one at once. No
  // Beat() follows. If it fails, others wait as they do for one that died.
  virtual Status Release() = 0;
};

}  // namespace keel
