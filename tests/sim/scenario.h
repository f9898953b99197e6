// Scenario: everything about one simulated run that is drawn from its seed before it starts.
// Promises   the same seed gives the same scenario. Faults come only from this list:
//            hosts    killed with and without a goodbye, cut off, paused, asked to stop, late, back
//            workers  die at any moment, fail to start, are slow or too slow to park, hang, ignore
//                     SIGTERM, see the group break by themselves or do not
//            numerics of one host's workers are others than those of the rest
//            boards   requests and replies lost, connections cut; gone with their hosts
//            lease    out of reach, answers lost, what is read there is old, each host has another
//                     one; half of the jobs have a lease
//            links    those from some hosts to others are cut, both ways or one way only, so that a
//                     board takes what is written and its answers are lost
//            pokes    delayed, lost; presence connections that break although nobody died
//            clocks   of two hosts are up to 1 % apart in their speed
// Does not   contain a network that alters bytes, or clocks that jump.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/board/coordinator.h"
#include "elastic/decisions/host_machine.h"

namespace keel {

inline constexpr const char* kSimJob = "sim";

struct SimFault {
  enum class Kind {
    kKillSupervisor,   // its workers die with it, its presence connection closes
    kPowerOff,         // the same, but nobody is told
    kCutOff,           // no packet in or out, for a while
    kPause,            // the supervisor stands still, its workers do not
    kKillWorker,
    kHangWorker,
    kFlapPresence,
    kStoreFault,       // one operation of one client
    kStop,             // SIGTERM to the supervisor
    kLeaseAway,        // the host cannot reach the job's lease
    kCutLinks,         // no packet passes from some hosts to others, or back
  };
  Kind kind = Kind::kKillWorker;
  Duration at{0};
  int host = 0;
  int seat = 0;
  Duration length{0};
  int detail = 0;
  // kCutLinks: sets of hosts, a bit for each.
  unsigned from = 0, to = 0;
  bool one_way = false;
};

// A mistake planted on purpose, to see that the Checker finds it.
enum class Defect {
  kNone,
  kPromisesTooEarly,   // a supervisor says that its workers are outside before they are
  kNoFence,            // the coordinator does not wait for silent hosts to stop by themselves
  kDeafCoordinator,    // it stops to look once there is an epoch
  kAnyNumerics,        // the coordinator lets hosts of any numerics in
  kTrustingWorkers,    // they run on however long their supervisor says nothing
  kNoQuorum,           // a coordinator forms epochs of whoever is there
  kLeaseIsEnough,      // a host says that all have found its epoch in the lease
  kLeaseIsFree,        // whoever looks at the lease sees that its holder is gone
  kSilenceIsDeath,     // who lost a silent coordinator says that its machine refused
  kTakesUnasked,       // an heir takes the role although others still hear the coordinator
  kFollowsBehind,      // who lost a board follows any other that somebody names
  kOpensTwice,         // an heir forgets that it has opened a board, and opens it once more
  kOutrunsMoved,       // an heir that is asked forms epochs before the former board was left
  kForgetsRestarts,    // a later board is not told how many restarts were spent
  kDeadNotCounted,     // no dead host is counted, whatever it has done since that epoch
  kBelievesAnybody,    // stores are not sealed, although strangers can write to them
  kFormsOn,            // a coordinator that has lost the lease to another one holds on to it
};

struct Scenario {
  uint64_t seed = 0;
  int hosts = 1;
  int seats = 1;
  bool in_place = true;
  JobPolicy policy;
  HostConfig host;
  bool has_lease = false;
  bool lease_apart = false;      // each host finds another lease under that name, not the same one
  bool lease_needs_link = false; // a host that is cut off cannot reach the lease either
  double lease_loss = 0;         // of answers
  double lease_age = 0;          // of looks that see what the host saw last
  double poke_loss = 0;
  double interleave = 0;
  double start_failure = 0;
  bool checks_health = false;            // before each start of a worker
  double unfit = 0;                      // how often that finds a host not fit
  bool sealed = false;                   // the job has a token, and a stranger writes to its boards
  double slow = 0;               // of parking, ending, starting
  Duration step_time{0};
  int64_t steps = 0;
  Duration quiet_after{0};       // no faults from then on
  std::vector<Duration> arrivals;
  std::vector<SimFault> faults;
  std::vector<int> drift;        // of each host's clock, in parts of 100,000; empty: none
  int odd_host = -1;             // whose workers have other numerics; -1: none
  bool stop_asked = false;
  bool one_coordinator = false;  // nobody takes the role of host 0
  bool hosts_stay = false;       // only workers and the store's answers are struck
  Defect defect = Defect::kNone;

  int DriftOf(int of) const { return of < static_cast<int>(drift.size()) ? drift[of] : 0; }
  std::string Text() const;
};

Scenario DrawScenario(uint64_t seed);

// By which a job that has enough healthy hosts must be in a complete epoch, or over.
Duration LivenessBound(const Scenario& scenario);

}  // namespace keel
