// Gives ranks: survivors first, then the rest by place.
#include "elastic/decisions/ranks.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace keel {
namespace {

void SortByPlace(std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.slot, a.index) < std::tie(b.slot, b.index);
  });
}

EpochWorker Ranked(int rank, const Candidate& candidate) {
  return {rank, candidate.slot, candidate.index, candidate.worker};
}

}  // namespace

std::vector<EpochWorker> RanksInPlace(std::vector<Candidate> candidates) {
  SortByPlace(candidates);
  const int size = static_cast<int>(candidates.size());
  std::vector<std::optional<EpochWorker>> by_rank(candidates.size());
  std::vector<const Candidate*> others;
  for (const Candidate& candidate : candidates) {
    const int rank = candidate.former_rank;
    if (rank >= 0 && rank < size && !by_rank[rank]) {
      by_rank[rank] = Ranked(rank, candidate);
    } else {
      others.push_back(&candidate);
    }
  }
  auto next = others.begin();
  std::vector<EpochWorker> workers;
  for (int rank = 0; rank < size; ++rank) {
    workers.push_back(by_rank[rank] ? *by_rank[rank] : Ranked(rank, **next++));
  }
  KEEL_CHECK(next == others.end(), "candidates without a rank");
  return workers;
}

std::vector<EpochWorker> RanksForeign(const std::vector<EpochHost>& hosts,
                                      std::vector<Candidate> candidates) {
  SortByPlace(candidates);
  std::vector<EpochWorker> workers;
  for (const EpochHost& host : hosts) {
    for (const Candidate& candidate : candidates) {
      if (candidate.slot != host.slot) continue;
      workers.push_back(Ranked(static_cast<int>(workers.size()), candidate));
    }
  }
  KEEL_CHECK(workers.size() == candidates.size(), "candidates on hosts that are not in the epoch");
  return workers;
}

}  // namespace keel
