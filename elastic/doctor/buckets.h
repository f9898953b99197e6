// What a host finds out about the buckets of a job, by trying.
// Promises   returns within a limit for all; what it puts there is removed, if the store answers.
// Threads    any.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/doctor/facts.h"
#include "elastic/launch/config.h"

namespace keel {

// Those that the command names, each once: --doctor-dir, the lease, the program's --checkpoint-dir
// and --checkpoint-mirror.
std::vector<std::string> BucketsOf(const LaunchConfig& config);

// All at once, in the order of `places`.
std::vector<BucketFacts> LookAtBuckets(const std::vector<std::string>& places, Random random);

}  // namespace keel
