// Takes medians over steps, then their median over workers.
#include "trainer/log/stragglers.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"

namespace keel {
namespace {

// The lower of the middle two, so that of two workers the slow one stands out.
int64_t LowMedian(std::vector<int64_t> values) {
  const size_t middle = (values.size() - 1) / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
  return values[middle];
}

}  // namespace

StragglerDecision DecideStragglers(const std::deque<std::vector<int64_t>>& times,
                                   const StragglerPolicy& policy) {
  StragglerDecision decision;
  if (times.size() < policy.steps || times.empty()) return decision;
  std::vector<int64_t> of_rank(times.front().size());
  std::vector<int64_t> busy;
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    std::vector<int64_t> of_steps;
    for (const std::vector<int64_t>& step : times) of_steps.push_back(step[rank]);
    of_rank[rank] = LowMedian(std::move(of_steps));
    if (of_rank[rank] > 0) busy.push_back(of_rank[rank]);
  }
  if (busy.size() < 2) return decision;
  const int64_t usual = LowMedian(busy);
  std::vector<std::string> words;
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    if (static_cast<double>(of_rank[rank]) <= policy.factor * static_cast<double>(usual)) continue;
    if (of_rank[rank] - usual < policy.least_ns) continue;
    decision.ranks.push_back(static_cast<int>(rank));
    words.push_back("rank " + std::to_string(rank) + ": " + DurationText(Duration(of_rank[rank])) +
                    " per lane");
  }
  if (!words.empty()) {
    decision.detail = JoinList(words, ", ") + ", the median worker " +
                      DurationText(Duration(usual));
  }
  return decision;
}

void StragglerWindow::Add(const std::vector<int64_t>& compute_ns, const std::vector<int>& lanes) {
  KEEL_CHECK(compute_ns.size() == lanes.size(), compute_ns.size() << " != " << lanes.size());
  if (!times_.empty() && times_.front().size() != lanes.size()) times_.clear();
  std::vector<int64_t> of_lane(lanes.size());
  for (size_t rank = 0; rank < lanes.size(); ++rank) {
    of_lane[rank] = lanes[rank] == 0 ? 0 : compute_ns[rank] / lanes[rank];
  }
  times_.push_back(std::move(of_lane));
  if (times_.size() > policy_.steps) times_.pop_front();
}

int64_t StragglerWindow::StepsOf(int rank) const {
  StragglerPolicy of_one = policy_;
  of_one.steps = 1;
  return std::count_if(times_.begin(), times_.end(), [&](const std::vector<int64_t>& step) {
    const std::vector<int> slow = DecideStragglers({step}, of_one).ranks;
    return std::binary_search(slow.begin(), slow.end(), rank);
  });
}

}  // namespace keel
