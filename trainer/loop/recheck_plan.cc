// Turns rotate partners first, then lanes.
#include "trainer/loop/recheck_plan.h"

#include <algorithm>

namespace keel {
namespace {

constexpr uint64_t kUsualLanes = 200;   // of a worker's own, for one of another one's

template <class Take>
std::vector<int> RanksWhere(size_t world, const Take& take) {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(world); ++rank) {
    if (take(static_cast<size_t>(rank))) ranks.push_back(rank);
  }
  return ranks;
}

// Those that may be checked by that rank: the farther away, the better.
std::vector<int> OwnersFor(size_t rank, const Placement& placement,
                           const std::vector<std::string>& hosts) {
  const size_t world = placement.size();
  std::vector<int> owners = RanksWhere(world, [&](size_t other) {
    return !placement[other].empty() && hosts[other] != hosts[rank];
  });
  if (!owners.empty()) return owners;
  owners = RanksWhere(world, [&](size_t other) {
    return !placement[other].empty() && other != rank;
  });
  return owners.empty() ? std::vector<int>{static_cast<int>(rank)} : owners;
}

void NameThird(Dispute& dispute, const std::vector<std::string>& hosts) {
  const auto is_apart = [&](size_t rank) {
    return static_cast<int>(rank) != dispute.owner && static_cast<int>(rank) != dispute.checker;
  };
  const std::string& owners = hosts[static_cast<size_t>(dispute.owner)];
  const std::string& checkers = hosts[static_cast<size_t>(dispute.checker)];
  std::vector<int> others = RanksWhere(hosts.size(), [&](size_t rank) {
    return is_apart(rank) && hosts[rank] != owners && hosts[rank] != checkers;
  });
  if (others.empty()) others = RanksWhere(hosts.size(), is_apart);
  if (others.empty()) return;
  dispute.third = others.front();
  if (owners == checkers) return;   // who is of one host with both takes no side
  const std::string& thirds = hosts[static_cast<size_t>(others.front())];
  if (thirds == owners) dispute.beside_third = dispute.owner;
  if (thirds == checkers) dispute.beside_third = dispute.checker;
}

}  // namespace

uint64_t UsualRecheckEvery(const Placement& placement) {
  uint64_t fewest = kUsualLanes;
  for (const LaneRange& lanes : placement) {
    if (!lanes.empty()) fewest = std::min(fewest, static_cast<uint64_t>(lanes.count()));
  }
  return (kUsualLanes + fewest - 1) / fewest;
}

std::vector<RecheckTask> PlanRecheck(uint64_t turn, const Placement& placement,
                                     const std::vector<std::string>& hosts) {
  const size_t world = placement.size();
  std::vector<RecheckTask> tasks(world);
  for (size_t rank = 0; rank < world; ++rank) {
    const std::vector<int> owners = OwnersFor(rank, placement, hosts);
    const int owner = owners[(turn + rank) % owners.size()];
    const LaneRange& lanes = placement[static_cast<size_t>(owner)];
    // All that check one owner check the same lane.
    const int lane = lanes.begin + static_cast<int>(turn / world %
                                                    static_cast<uint64_t>(lanes.count()));
    tasks[rank].other = lane;
    tasks[rank].owner = owner;
    tasks[static_cast<size_t>(owner)].own = lane;
  }
  return tasks;
}

std::optional<Dispute> DisputeIn(const std::vector<RecheckTask>& tasks,
                                 const std::vector<VoteRecord>& records,
                                 const std::vector<std::string>& hosts) {
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    const RecheckTask& task = tasks[rank];
    if (!task.other) continue;
    if (records[rank].other_lane == records[static_cast<size_t>(task.owner)].own_lane) continue;
    Dispute dispute{*task.other, task.owner, static_cast<int>(rank)};
    NameThird(dispute, hosts);
    return dispute;
  }
  return std::nullopt;
}

Verdict Decide(const Dispute& dispute, const Testimony& testimony) {
  if (dispute.owner == dispute.checker) {
    return {std::nullopt, "it computed the lane twice, and came to two results"};
  }
  const std::string outvoted = "two others came to one result";
  if (testimony.third == testimony.checker && dispute.beside_third != dispute.checker) {
    return {dispute.owner, outvoted};
  }
  if (testimony.third == testimony.owner && dispute.beside_third != dispute.owner) {
    return {dispute.checker, outvoted};
  }
  const bool owner_repeats = testimony.owner == testimony.owner_again;
  const bool checker_repeats = testimony.checker == testimony.checker_again;
  const std::string repeats = "it came to another result when it computed the lane once more, and "
                              "the other one did not";
  if (owner_repeats && !checker_repeats) return {dispute.checker, repeats};
  if (checker_repeats && !owner_repeats) return {dispute.owner, repeats};
  return {std::nullopt, owner_repeats ? "each one comes to its own result every time"
                                      : "neither one came to the same result twice"};
}

SumsVerdict CompareSums(const std::vector<VoteRecord>& records) {
  SumsVerdict verdict;
  for (const VoteRecord& record : records) verdict.differ |= record.sums != records[0].sums;
  if (!verdict.differ) return verdict;
  for (const VoteRecord& most : records) {
    const auto others = RanksWhere(records.size(), [&](size_t rank) {
      return records[rank].sums != most.sums;
    });
    if (others.size() * 2 < records.size()) verdict.wrong = others;
  }
  return verdict;
}

}  // namespace keel
