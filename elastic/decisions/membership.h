// Membership: what the coordinator does next, as a pure function of what it knows (PROTOCOL.md
// sections 6 to 9).
// Promises   one decision, its reason as an enum (for tests and metrics) and in words (for the
//            log); every wait says until when; the same view gives the same decision. An epoch is
//            formed only when no host of the former one can have a worker inside it: each has
//            promised so (`outside`), or is gone and cannot get on without one that has.
// Does not   read clocks, boards or sockets: elastic/board/coordinator.h does, and carries it out.
// Threads    pure functions over plain values.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/decisions/lease_rule.h"
#include "elastic/decisions/restarts.h"
#include "elastic/protocol/limits.h"
#include "elastic/protocol/records.h"

namespace keel {

struct JobPolicy {
  int hosts_min = 1;
  int hosts_max = 1;
  Duration join_limit = kJoinLimit;
  Duration last_call_limit = kLastCallLimit;
  Duration rejoin_limit = kRejoinLimit;                    // where hosts were members before
  Duration beat_limit = kBeatLimit;                        // interval x attempts
  Duration presence_grace = kPresenceGrace;
  Duration park_limit = kParkLimit;
  Duration stop_grace = kStopGrace;                        // beyond the deadline of a stop wish
  Duration fence_limit = kFenceLimit;                      // a silent host has stopped by then
  Duration enter_limit = kEnterLimit;                      // from an epoch to a first position
  std::optional<Duration> hang_limit;                      // nothing: from the median step
  RestartPolicy restarts;
  int shun_after = kShunAfter;                             // deaths on one host; 0: never
  bool allow_inexact = false;
  bool program_says_hello = false;                         // its file says that it is in place
  bool needs_quorum = true;                                // for each epoch (quorum.h)
  bool believes_refusals = true;                           // who refuses connections is dead
  Duration quorum_limit = kStoreLimit;                     // for enough hosts to be back
};

// A host as the coordinator sees it.
struct HostView {
  int64_t slot = 0;
  MemberRecord record;                         // the last one read
  TimePoint arrived;                           // when it was first seen
  TimePoint heard;                             // when its beat last rose
  std::optional<TimePoint> presence_closed;    // unless the connection is open, or never was
  std::optional<int64_t> anew;                 // the slot in which it has registered since
  std::string unreadable;                      // what is wrong with the record, if something is
  bool gone = false;                           // expired, refused, or left in good order
  bool died = false;                           // its process is dead, as its machine says
  std::string gone_reason;
  std::vector<TimePoint> incidents = {};       // of its record, while it was in the job
  int64_t blamed_when_needed = 0;              // so many deaths were told of, and it had to stay
};

// "node7 (slot 2)"
std::string NameOf(const HostView& host);
// Whether an epoch can take in the worker of that seat.
bool CanEnter(const SeatRecord& seat);

// The host of that slot among `hosts`, which are in the order of slots; null: there is none.
template <class Hosts>
auto* FindSlot(Hosts& hosts, int64_t slot) {
  const auto at = std::lower_bound(
      hosts.begin(), hosts.end(), slot,
      [](const HostView& host, int64_t wanted) { return host.slot < wanted; });
  return at != hosts.end() && at->slot == slot ? &*at : nullptr;
}

struct EpochView {
  EpochRecord record;
  std::optional<BreakRecord> broken;
  std::optional<TimePoint> parked;     // when somebody was first seen parked at a boundary
  bool announced = false;              // `joining` names it
  bool taken_up = false;               // from what hosts told, not formed by this coordinator
  bool incomplete = false;             // taken up without all of its hosts
  bool keeper_lost = false;            // ... of which only the one that kept the store is missing
  TimePoint moved;                     // when a position of it last changed
};

struct JobView {
  std::string coordinator;             // incarnation of the coordinator's own supervisor
  JobKind kind = JobKind::kForeign;
  std::vector<HostView> hosts;         // by slot, with those that are gone
  std::optional<EpochView> epoch;      // the newest
  TimePoint idle_since;                // since when no epoch runs: opened, broken or parked
  TimePoint opened;
  std::vector<TimePoint> failures;     // that count as restarts
  int restarts_before = 0;             // spent under former stores, beyond the window of restarts
  std::vector<CountedEpoch> counted;   // each that a host has seen, as far as it is known
  bool handing_over = false;           // the role is about to go to another host
  std::optional<TimePoint> no_quorum_since;   // of the wait that lasts
  std::optional<LinkView> lease;       // nothing: the job has none
  std::string handed_over_by;          // the former coordinator, if it asked this one; else empty
  bool is_later_board = false;         // not the one that the job began with
  std::optional<int64_t> former_first;   // number of this run's first epoch, by the board before
  std::optional<CountedEpoch> former;  // the newest of the board before, which is written no more:
                                       // with those of its hosts that may still run it
  ShunnedRecord shunned;               // hosts that are left out
  std::optional<StopRecord> stop;
  TimePoint stopped_at;                // when that was first seen
  Duration median_step{0};
  // How many epochs in a row broke, as their workers tell, without a step and without a death. It
  // is likely that their group cannot be built.
  int barren = 0;
  TimePoint barren_since;

  // It may not have read yet that it is left out.
  bool IsShunned(const HostView& host) const {
    return shunned.FindLauncher(host.record.incarnation) != nullptr;
  }
};

enum class Reason {
  // kWait
  kRunning, kHostsMissing, kLastCall, kWorkersInside, kFence, kTakingUp, kJoinLastCall, kStopping,
  kNumericsOpen, kBarren, kStandsStill, kHandingOver, kNoQuorum, kHeld,
  // kExpire
  kSilent, kPresenceClosed, kRegisteredAnew,
  // kRefuse
  kOtherFingerprint, kUnreadable, kShunnedBefore,
  // kShun
  kUnfit, kUnfitNeeded,
  // kTakeUp
  kTold,
  // kForm
  kAllHere, kLastCallOver, kReformed,
  // kBreak: the reason is the cause in `broken`
  kBroken,
  // kAnnounce
  kSomebodyWaits,
  // kStop
  kTooFewStay, kCoordinatorLeaves,
  // kEnd
  kFinished, kStopped, kStoppedUnsaved, kRestartsSpent, kQuorumLost, kNeverBuilt,
};

struct Decision {
  enum class Verdict {
    kWait, kExpire, kRefuse, kShun, kTakeUp, kForm, kBreak, kAnnounce, kStop, kEnd
  };

  Verdict verdict = Verdict::kWait;
  Reason reason = Reason::kRunning;
  std::string detail;
  TimePoint until = kNever;   // kWait: when to ask again although nothing has changed
  TimePoint gives_up = kNever;   // kWait: when it ends, if nothing changes
  std::string cure = {};      // kWait: what a person can do about it
  Duration waited{0};         // kWait: for how long so far, where it was told before
  int64_t slot = -1;          // kExpire, kRefuse, kShun
  EpochRecord epoch;          // kForm, kTakeUp: all but its id and store
  // kForm: once the number of the lease that follows this one is claimed for it; else nothing is.
  std::optional<int64_t> claims_after = {};
  std::optional<BoardPlace> held = {};   // kWait: the job goes on there, as its lease says
  bool incomplete = false;    // kTakeUp
  bool keeper_lost = false;   // kTakeUp
  BreakRecord broken;         // kBreak: all but who writes it
  StopRecord stop;            // kStop
  int code = 0;               // kEnd
};

Decision Decide(const JobView& view, const JobPolicy& policy, TimePoint now);

}  // namespace keel
