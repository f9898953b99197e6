// Dissemination: in round k a member passes on the newest 2^k records that it has, its own first.
#include "trainer/exchange/gather_plan.h"

#include <algorithm>

#include "base/check.h"

namespace keel {
namespace {

// rank, rank-1, ... around the ring: the order in which a member learns records.
std::vector<int> Backwards(int rank, int count, int size) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back((rank - i + size) % size);
  return ranks;
}

}  // namespace

std::vector<GatherRound> PlanGather(int rank, int size) {
  KEEL_CHECK(rank >= 0 && rank < size, "rank=" << rank << " size=" << size);
  std::vector<GatherRound> rounds;
  for (int distance = 1; distance < size; distance *= 2) {
    const int count = std::min(distance, size - distance);  // the last round has less to tell
    GatherRound round;
    round.to = (rank + distance) % size;
    round.from = (rank - distance + size) % size;
    round.sends = Backwards(rank, count, size);
    round.receives = Backwards(round.from, count, size);
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace keel
