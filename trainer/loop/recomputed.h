// Recomputed: what a machine has found that computed a lane again: whose results it comes to.
// Promises   what RecomputedJson() writes is read by RecomputedIn() as the same.
// Threads    plain values. Errors: kInvalid: the answer of the program makes no sense.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace keel {

// What somebody came to, compared with what this machine comes to.
struct RecomputedClaim {
  std::string member;
  std::string role;            // owner, checker, witness
  bool is_second = false;      // after a difference had been seen
  std::string differs;         // in what; empty: it is the same
};

struct Recomputed {
  uint64_t step = 0;
  int lane = 0;
  std::string verdict;         // of the job, then
  std::vector<RecomputedClaim> claims;
};

Json RecomputedJson(const Recomputed& recomputed);
Result<Recomputed> RecomputedIn(const Json& json);

}  // namespace keel
