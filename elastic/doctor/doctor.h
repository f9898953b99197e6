// Doctor: examines all hosts of a job before there is one, over the same store, names and addresses
// that the job would use.
// Promises   every host that came learns the same and prints the same findings, whichever host is
//            at fault; each wait has a limit, and the report names the hosts that were waited for.
//            What it writes (a small file in the shared directory, a folder where the logs will
//            be, keys in a store of its own) is removed, unless a signal ends it.
// Does not   start workers, or touch a job that runs: if one holds the endpoint, it says so. It
//            tries one port of each host, not all; it measures plain TCP, not Gloo or NCCL.
// Threads    one; it starts some of its own while it runs.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "base/files.h"
#include "base/random.h"
#include "elastic/doctor/findings.h"
#include "elastic/launch/config.h"
#include "store/store_maker.h"

namespace keel {

struct DoctorWorld {
  StoreMaker* stores;             // null: there is none, and `stores_trouble` says why
  std::string stores_trouble;
  Files& files;                   // must outlive a call that hangs: lives as long as the process
  Clock& clock;
  Random random;
  Environment environment;
  std::string program_trouble;    // why the program cannot be started here; empty: it can
  std::string health_trouble;     // what the health check says of this host; empty: it is fit
};

// `config.doctor` says what is wanted.
std::vector<Finding> RunDoctor(const LaunchConfig& config, DoctorWorld world);

}  // namespace keel
