// SlowSteps: how many steps of an epoch this worker was much slower in than most, by the votes.
// Threads    the training thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/log/stragglers.h"
#include "trainer/loop/vote_record.h"
#include "trainer/numerics/placement.h"

namespace keel {

class SlowSteps {
 public:
  explicit SlowSteps(int rank) : rank_(rank) {}

  // Of one step. Steps are judged together, so many at a time as StragglerPolicy says: with the
  // last one of them the answer is how many of them were slow, if they were so by their median, and
  // else 0, as between.
  int64_t Note(const std::vector<VoteRecord>& records, const Placement& lanes);

 private:
  const int rank_;
  StragglerWindow window_;
  int64_t seen_ = 0;
};

}  // namespace keel
