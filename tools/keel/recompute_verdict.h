// RecomputeVerdict: whose results of a lane are right, as far as the machine is that has just
// computed it.
// Threads    pure functions. Errors: kInvalid: the answer of the program makes no sense.
#pragma once

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
Result<std::vector<RecomputedClaim>> ClaimsIn(const Json& answer);

struct RecomputeVerdict {
  std::vector<std::string> wrong;   // members with a result that differs
  std::vector<std::string> right;   // with none
  std::string sentence;
};
RecomputeVerdict JudgeClaims(const std::vector<RecomputedClaim>& claims);

}  // namespace keel
