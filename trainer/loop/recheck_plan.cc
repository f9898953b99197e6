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

std::vector<Witness> WitnessesOf(const Dispute& dispute, const std::vector<std::string>& hosts) {
  const std::string& owners = hosts[static_cast<size_t>(dispute.owner)];
  const std::string& checkers = hosts[static_cast<size_t>(dispute.checker)];
  const auto first_of = [&](const auto& take) -> std::optional<int> {
    const std::vector<int> found = RanksWhere(hosts.size(), [&](size_t rank) {
      const bool apart = static_cast<int>(rank) != dispute.owner &&
                         static_cast<int>(rank) != dispute.checker;
      return apart && take(hosts[rank]);
    });
    return found.empty() ? std::nullopt : std::optional<int>(found.front());
  };
  const auto third = first_of([&](const std::string& host) {
    return host != owners && host != checkers;
  });
  if (third) return {{*third}};
  const auto beside_owner = first_of([&](const std::string& host) { return host == owners; });
  if (owners == checkers) {   // who is of one host with both takes no side
    return beside_owner ? std::vector<Witness>{{*beside_owner}} : std::vector<Witness>();
  }
  const auto beside_checker = first_of([&](const std::string& host) { return host == checkers; });
  std::vector<Witness> witnesses;
  if (beside_owner) witnesses.push_back({*beside_owner, dispute.owner});
  if (beside_checker) witnesses.push_back({*beside_checker, dispute.checker});
  return witnesses;
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

bool Dispute::IsAbout(int rank) const {
  return rank == owner || rank == checker ||
         std::any_of(witnesses.begin(), witnesses.end(),
                     [rank](const Witness& witness) { return witness.rank == rank; });
}

std::vector<Dispute> DisputesIn(const std::vector<RecheckTask>& tasks,
                                const std::vector<VoteRecord>& records,
                                const std::vector<std::string>& hosts) {
  std::vector<Dispute> disputes;
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    const RecheckTask& task = tasks[rank];
    if (!task.other) continue;
    if (records[rank].other_lane == records[static_cast<size_t>(task.owner)].own_lane) continue;
    Dispute dispute{*task.other, task.owner, static_cast<int>(rank)};
    if (dispute.owner != dispute.checker) dispute.witnesses = WitnessesOf(dispute, hosts);
    disputes.push_back(std::move(dispute));
  }
  // What others say decides more than a worker's comparison with itself.
  std::stable_partition(disputes.begin(), disputes.end(), [](const Dispute& dispute) {
    return dispute.owner != dispute.checker;
  });
  return disputes;
}

Verdict Decide(const Dispute& dispute, const Testimony& testimony) {
  if (dispute.owner == dispute.checker) {
    return {std::nullopt, "it computed the lane twice, and came to two results"};
  }
  bool against_owner = false;
  bool against_checker = false;
  for (size_t i = 0; i < dispute.witnesses.size(); ++i) {
    const std::optional<int> beside = dispute.witnesses[i].beside;
    const LaneResult& result = testimony.witnesses[i];
    against_owner |= result == testimony.checker && beside != dispute.checker;
    against_checker |= result == testimony.owner && beside != dispute.owner;
  }
  if (against_owner != against_checker) {
    return {against_owner ? dispute.owner : dispute.checker, "two others came to one result"};
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

Minority MinorityOf(const std::vector<std::optional<Digest>>& digests) {
  Minority minority;
  for (const auto& digest : digests) minority.differ |= digest != digests.front();
  if (!minority.differ) return minority;
  for (const auto& most : digests) {
    const auto others = RanksWhere(digests.size(), [&](size_t rank) {
      return digests[rank] != most;
    });
    if (others.size() * 2 < digests.size()) minority.wrong = others;
  }
  return minority;
}

}  // namespace keel
