// `same` is for those who read the JSON without us.
#include "trainer/loop/recomputed.h"

#include <utility>

#include "base/json.h"

namespace keel {

Json RecomputedJson(const Recomputed& recomputed) {
  Json claims = Json::array();
  for (const RecomputedClaim& claim : recomputed.claims) {
    claims.push_back({{"member", claim.member},
                      {"role", claim.role},
                      {"second", claim.is_second},
                      {"same", claim.differs.empty()},
                      {"differs", claim.differs}});
  }
  return {{"step", recomputed.step},
          {"lane", recomputed.lane},
          {"verdict", recomputed.verdict},
          {"claims", std::move(claims)}};
}

Result<Recomputed> RecomputedIn(const Json& json) {
  Recomputed recomputed;
  KEEL_TRY_ASSIGN(recomputed.step, Field<uint64_t>(json, "step"));
  KEEL_TRY_ASSIGN(recomputed.lane, Field<int>(json, "lane"));
  KEEL_TRY_ASSIGN(recomputed.verdict, Field<std::string>(json, "verdict"));
  KEEL_TRY_ASSIGN(const Json* const array, ArrayField(json, "claims"));
  for (const Json& one : *array) {
    RecomputedClaim claim;
    KEEL_TRY_ASSIGN(claim.member, Field<std::string>(one, "member"));
    KEEL_TRY_ASSIGN(claim.role, Field<std::string>(one, "role"));
    KEEL_TRY_ASSIGN(claim.is_second, Field<bool>(one, "second"));
    KEEL_TRY_ASSIGN(claim.differs, Field<std::string>(one, "differs"));
    recomputed.claims.push_back(std::move(claim));
  }
  if (!recomputed.claims.empty()) return recomputed;
  return Error{Code::kInvalid, "the program's answer has no results in it"};
}

}  // namespace keel
