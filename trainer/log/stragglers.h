// Stragglers: which workers are slower than the others, judged by what the votes say.
// Promises   one slow step makes nobody a straggler: the median of the last steps counts.
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
  size_t steps = 20;      // that are looked at; nobody is named before there are so many
  double factor = 1.5;    // of the median worker's time
};

struct StragglerDecision {
  std::vector<int> ranks;   // sorted
  std::string detail;       // "rank 2: 31 ms a lane, the median worker 12 ms"
};

// `times`: for each of the last steps, the nanoseconds of one lane by rank; 0: it had no lanes.
StragglerDecision DecideStragglers(const std::deque<std::vector<int64_t>>& times,
                                   const StragglerPolicy& policy);

// The last steps of one membership.
class StragglerWindow {
 public:
  explicit StragglerWindow(const StragglerPolicy& policy = {}) : policy_(policy) {}

  // `compute_ns` and `lanes` by rank. Another number of workers begins anew.
  void Add(const std::vector<int64_t>& compute_ns, const std::vector<int>& lanes);
  StragglerDecision Decide() const { return DecideStragglers(times_, policy_); }

 private:
  const StragglerPolicy policy_;
  std::deque<std::vector<int64_t>> times_;
};

}  // namespace keel
