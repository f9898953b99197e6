// Each member once, in the order of the claims.
#include "tools/keel/recompute_verdict.h"

#include <algorithm>

#include "base/text.h"

namespace keel {
namespace {

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

RecomputeVerdict JudgeClaims(const std::vector<RecomputedClaim>& claims) {
  RecomputeVerdict verdict;
  std::vector<std::string> at_times;   // with results of both kinds
  for (const RecomputedClaim& claim : claims) {
    const bool is_new = !Holds(verdict.wrong, claim.member);
    if (!claim.differs.empty() && is_new) verdict.wrong.push_back(claim.member);
  }
  for (const RecomputedClaim& claim : claims) {
    std::vector<std::string>& names = Holds(verdict.wrong, claim.member) ? at_times : verdict.right;
    if (claim.differs.empty() && !Holds(names, claim.member)) names.push_back(claim.member);
  }
  verdict.is_alone = verdict.right.empty() && at_times.empty();
  const std::string right = JoinList(verdict.right, ", ");
  const std::string wrong = JoinList(verdict.wrong, ", ");
  if (verdict.is_alone) {
    verdict.sentence = "This machine comes to another result than everybody: it is wrong, or the "
                       "program comes to another one each time.";
  } else if (verdict.right.empty()) {
    verdict.sentence = "This machine comes to a result that " + JoinList(at_times, ", ") +
                       " came to, too, beside another one. At least once wrong: " + wrong +
                       ", or the program comes to another result each time.";
  } else if (verdict.wrong.empty()) {
    verdict.sentence = "This machine comes to the result of everybody: " + right + ".";
  } else {
    verdict.sentence = "This machine comes to the results of " + right + ". Wrong: " + wrong + ".";
  }
  return verdict;
}

}  // namespace keel
