// A wing that includes what lies above it.
#include "elastic/attic/chest.h"    // expect: include-wing
#include "elastic/doctor/doctor.h"  // expect: include-wing
#include "elastic/protocol/keys.h"
#include "elastic/supervisor.h"     // expect: include-wing
