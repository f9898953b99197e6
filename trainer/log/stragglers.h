// Stragglers: which workers are slower than the others, judged by the times in their votes.
// Promises   one slow step makes nobody a straggler: the median of the last steps counts. Nor does
//            a difference that is too short to matter, as where a lane takes next to no time.
// Does not   know why, or do anything about it.
// Threads    Decide() is pure; a StragglerWindow belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace keel {

struct StragglerPolicy {
  size_t steps = 20;      // the number of steps judged; nobody is named before there are that many
  double factor = 1.5;    // of the median worker's time
  int64_t least_ns = 1'000'000;   // and at least so much more than it, for a lane
};

struct StragglerDecision {
  std::vector<int> ranks;   // sorted
  std::string detail;       // "rank 2: 31 ms a lane, the median worker 12 ms"
};

// `times`: for each of the last steps, the nanoseconds of one lane by rank; 0: that rank had no
// lanes.
StragglerDecision DecideStragglers(const std::deque<std::vector<int64_t>>& times,
                                   const StragglerPolicy& policy);

// The last steps of one membership.
class StragglerWindow {
 public:
  explicit StragglerWindow(const StragglerPolicy& policy = {}) : policy_(policy) {}

  // `compute_ns` and `lanes` are by rank. A different number of workers begins a new window.
  void Add(const std::vector<int64_t>& compute_ns, const std::vector<int>& lanes);
  void Clear() { times_.clear(); }
  // Whether it holds as many steps as are judged.
  bool full() const { return times_.size() >= policy_.steps; }
  StragglerDecision Decide() const { return DecideStragglers(times_, policy_); }
  // In how many of its steps, each judged by itself, that rank was a straggler.
  int64_t StepsOf(int rank) const;

 private:
  const StragglerPolicy policy_;
  std::deque<std::vector<int64_t>> times_;
};

}  // namespace keel
