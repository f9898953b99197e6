// RecomputeVerdict: whose results of a lane are right, as far as the machine is that has just
// computed it.
// Threads    a pure function.
#pragma once

#include <string>
#include <vector>

#include "trainer/loop/recomputed.h"

namespace keel {

struct RecomputeVerdict {
  std::vector<std::string> wrong;   // members with a result that differs
  std::vector<std::string> right;   // with none
  bool is_alone = false;            // this machine: no result of anybody is its own
  std::string sentence;
};
RecomputeVerdict JudgeClaims(const std::vector<RecomputedClaim>& claims);

}  // namespace keel
