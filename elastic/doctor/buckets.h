// What a host finds out about the buckets of a job, by trying.
// Promises   returns within a limit for all; what it puts there is removed, if the store answers.
// Threads    any.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/doctor/facts.h"
#include "elastic/launch/config.h"

namespace keel {

struct BucketToTry {
  std::string place = {};
  bool is_unguarded = false;   // the program is told that its store may ignore conditions
  auto operator<=>(const BucketToTry&) const = default;
};

// Those that the command names, each once: --doctor-dir, the lease, the program's --checkpoint-dir
// and --checkpoint-mirror. A lease needs a store that knows conditions, whatever a program is told.
std::vector<BucketToTry> BucketsOf(const LaunchConfig& config);

// All at once, in the order of `places`.
std::vector<BucketFacts> LookAtBuckets(const std::vector<BucketToTry>& places, Random random);

}  // namespace keel
