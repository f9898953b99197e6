// Names the workers that are furthest behind when nothing has moved for too long.
#include "elastic/hangs.h"

#include <algorithm>

namespace keel {

Duration HangLimit(std::optional<Duration> asked, Duration median_step) {
  return asked ? *asked : std::max(kHangLimitMin, kHangSteps * median_step);
}

// Who has told nothing yet has the lowest position there is, so those are named where any are.
HangDecision DecideHang(const std::vector<RankPosition>& positions, TimePoint moved,
                        const HangLimits& limits, TimePoint now) {
  HangDecision decision;
  if (positions.empty()) return decision;
  const auto behind = [](const RankPosition& a, const RankPosition& b) {
    return a.position < b.position;
  };
  const auto [least, most] = std::minmax_element(positions.begin(), positions.end(), behind);
  const bool untold = least->position.step < 0;
  decision.until = moved + (untold ? limits.enter : limits.move);
  if (now < decision.until) return decision;
  decision.reason = "nothing moved for " + DurationText(now - moved) + "; " +
                    (untold ? "no position of this epoch was told by"
                            : "at step " + std::to_string(least->position.step) + ", phase " +
                                  std::to_string(least->position.phase) + ", are") +
                    " ranks";
  for (const RankPosition& one : positions) {
    if ((one.position.step < 0) != untold || (!untold && one.position != least->position)) continue;
    decision.ranks.push_back(one.rank);
    decision.reason += " " + std::to_string(one.rank);
  }
  decision.reason += "; the first is at step " + std::to_string(most->position.step);
  return decision;
}

}  // namespace keel
