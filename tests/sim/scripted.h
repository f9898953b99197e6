// Scripted: scenarios in which that goes wrong which is rare where faults are drawn one by one.
// Promises   the same seed gives the same scenario, whose sizes and limits are drawn as ever.
// Threads    any.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/scenario.h"
#include "tests/sim/world.h"

namespace keel {

// What a test prints of a run that failed.
std::string Told(uint64_t seed, const Outcome& outcome);

// Workers of the store's host die, and while the others make an epoch without them, the supervisors
// of all of those are cut off, or stand still. The quorum rule would keep that host from going on
// alone, so it is off here, and nobody takes a role.
Scenario LeftAlone(uint64_t seed, SimFault::Kind how, Duration length);

// A stop of the whole job at this time, and nothing else that goes wrong.
Scenario Stopped(uint64_t seed, Duration at);

// Two of three hosts cannot reach the lease, and the third one cannot reach those two: they go on
// by their quorum, which they need no lease for, since neither has found their epoch there.
Scenario NotShared(uint64_t seed);

// The coordinator's own host leaves three others, of which the heir cannot reach the other two.
Scenario HandedOver(uint64_t seed);

// While one of three hosts stands still, the other two go on without it. Then the coordinator dies,
// and the third one goes on alone, out of reach of the one that comes back.
Scenario DiedElsewhere(uint64_t seed);

}  // namespace keel
