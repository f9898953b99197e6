// LeaseHand: a launcher's hand on the lease of its job: it claims, beats and looks.
//
// A claim is a link of a chain (elastic/decisions/lease_rule.h). Whoever coordinates holds the last
// one: it claims a number for each epoch that it forms, and one when it goes on with the epoch of
// another coordinator.
//
// Promises   Claim() takes the number after `after`, or none. While the own host
//            coordinates and holds the last link, the link's beat rises. What is seen is as old as
//            View() says.
// Does not   decide who may form an epoch. Keep threads: elastic/board/lease_thread.h does.
// Threads    one at a time.
// Errors     those of Lease. Of Claim() also kStaleEpoch: somebody else has claimed that number.
// Lifetime   keeps the lease and the clock by reference.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "elastic/decisions/lease_rule.h"
#include "store/lease/lease.h"
#include "store/lease/lease_times.h"
#include "store/reach.h"

namespace keel {

// What the own host needs of the lease.
struct LeaseTask {
  // The link that says what it coordinates, with its epoch as it runs; nothing: it does not.
  std::optional<LinkRecord> own = {};
  bool opens = false;   // claims although there is no epoch yet: the lease is where hosts meet
  bool looks = false;   // wants to see the newest link
  bool operator==(const LeaseTask&) const = default;
};

class LeaseHand {
 public:
  // What one attempt to connect finds at a launcher's own port, or at a board.
  using Look = std::function<Reached(const std::string& address)>;

  LeaseHand(Lease& lease, Clock& clock, std::string incarnation, Look look_at);

  // Does what is due. Returns when to call it again, at the latest.
  TimePoint Poll(const LeaseTask& task);
  Status Claim(const LinkRecord& link, int64_t after);
  // If the last link is held, others may claim the next one at once.
  void Release();

  LinkView View() const;

 private:
  TimePoint Beat();
  Status See();
  bool IsOver() const;
  bool MayGoOn(const LeaseTask& task) const;

  Lease& lease_;
  Clock& clock_;
  const std::string incarnation_;
  const Look look_at_;

  LeaseWatch watch_;
  std::optional<TimePoint> seen_;       // when the last look that succeeded began
  std::optional<Error> failure_;        // of the last one
  LinkRecord link_;                     // of the newest claim; empty: it was not read yet
  bool is_dead_ = false;                // the launcher that made it, as its machine says
  bool is_there_ = false;               // its board can be reached
  std::optional<LeaseHolding> holding_; // of the link that this host holds
  Duration pause_{0};                   // between two looks of one who only wants to see
};

}  // namespace keel
