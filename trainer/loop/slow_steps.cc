// The window judges, and this looks at it once for each of its lengths.
#include "trainer/loop/slow_steps.h"

#include <algorithm>

namespace keel {

int64_t SlowSteps::Note(const std::vector<VoteRecord>& records, const Placement& lanes) {
  std::vector<int64_t> compute_ns;
  std::vector<int> counts;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    compute_ns.push_back(records[rank].compute_ns);
    counts.push_back(lanes[rank].count());
  }
  window_.Add(compute_ns, counts);
  const auto judged = static_cast<int64_t>(StragglerPolicy{}.steps);
  if (++seen_ % judged != 0) return 0;
  const std::vector<int> slow = window_.Decide().ranks;
  const bool is_slow = std::find(slow.begin(), slow.end(), rank_) != slow.end();
  return is_slow ? window_.StepsOf(rank_) : 0;
}

}  // namespace keel
