// For each number of nodes that a worker may ship at most, the placement whose slowest worker is
// fastest, found from the first rank on; of these, the one whose step takes least.
#include "trainer/numerics/placement.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/check.h"

namespace keel {
namespace {

// Where the search would look at more ways than this, lanes are split evenly.
constexpr int64_t kWaysMax = 4'000'000;
// A worker so much faster than the others that it should have more than this many times an even
// share gets no more.
constexpr int kTimesEven = 4;
// Of a lane about which nothing is known, beside a link about which nothing is known.
constexpr int64_t kUnknownLane = 1'000'000;
constexpr int64_t kUnknownLink = 1'000;
// 100 s. Others tell costs, and larger ones could overflow.
constexpr int64_t kCostMax = 100'000'000'000;

int64_t NodesIn(const LaneRange& range) { return static_cast<int64_t>(NodesOf(range).size()); }

// Of a worker's lanes, at most.
int MostLanes(int world, int lanes) {
  const int64_t even = (lanes + world - 1) / world;
  return static_cast<int>(std::min<int64_t>(lanes, kTimesEven * even));
}

class Search {
 public:
  Search(int lanes, const PlacementCosts& costs)
      : lanes_(lanes), costs_(costs), world_(static_cast<int>(costs.lane_ns.size())),
        least_(lanes >= world_ ? 1 : 0),
        most_(MostLanes(world_, lanes)) {
    for (int begin = 0; begin <= lanes_; ++begin) {
      nodes_.emplace_back();
      for (int count = 0; count <= std::min(most_, lanes_ - begin); ++count) {
        nodes_.back().push_back(NodesIn({begin, begin + count}));
        nodes_max_ = std::max(nodes_max_, nodes_.back().back());
      }
    }
  }

  // Of any range.
  int64_t nodes_max() const { return nodes_max_; }

  // Empty: there is none in which no worker ships more nodes.
  Placement WithNodes(int64_t nodes_max) {
    best_.assign(static_cast<size_t>(world_) + 1, std::vector<Way>(Width()));
    best_[0][0] = {0, 0, 0};
    for (int rank = 0; rank < world_; ++rank) {
      for (int begin = 0; begin <= lanes_; ++begin) Extend(rank, begin, nodes_max);
    }
    if (best_.back().back().slowest_ns == kNever) return {};
    Placement placement(static_cast<size_t>(world_));
    int end = lanes_;
    for (int rank = world_; rank > 0; --rank) {
      const int begin = end - At(rank, end).count;
      placement[static_cast<size_t>(rank) - 1] = {begin, end};
      end = begin;
    }
    return placement;
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // How the first ranks share the first lanes.
  struct Way {
    int64_t slowest_ns = kNever;
    int64_t nodes = 0;   // of all of them
    int count = 0;       // lanes of the last of these ranks
  };

  size_t Width() const { return static_cast<size_t>(lanes_) + 1; }
  Way& At(int ranks, int lanes) {
    return best_[static_cast<size_t>(ranks)][static_cast<size_t>(lanes)];
  }

  void Extend(int rank, int begin, int64_t nodes_max) {
    const Way before = At(rank, begin);
    if (before.slowest_ns == kNever) return;
    const auto& nodes = nodes_[static_cast<size_t>(begin)];
    for (int count = least_; count < static_cast<int>(nodes.size()); ++count) {
      const int64_t shipped = nodes[static_cast<size_t>(count)];
      if (shipped > nodes_max) continue;
      const int64_t own = costs_.lane_ns[static_cast<size_t>(rank)] * count;
      const Way way{std::max(before.slowest_ns, own), before.nodes + shipped, count};
      Way& best = At(rank + 1, begin + count);
      if (std::tie(way.slowest_ns, way.nodes) < std::tie(best.slowest_ns, best.nodes)) best = way;
    }
  }

  const int lanes_;
  const PlacementCosts& costs_;
  const int world_;
  const int least_;
  const int most_;
  int64_t nodes_max_ = 0;
  std::vector<std::vector<int64_t>> nodes_;   // by first lane, then by count
  std::vector<std::vector<Way>> best_;        // by number of ranks, then of lanes
};

}  // namespace

Placement EvenPlacement(int world, int lanes) {
  Placement placement;
  for (int rank = 0; rank < world; ++rank) placement.push_back(LanesOf(rank, world, lanes));
  return placement;
}

std::string PlacementText(const Placement& placement) {
  std::string text;
  for (const LaneRange& range : placement) {
    text += (text.empty() ? "" : "+") + std::to_string(range.count());
  }
  return text;
}

int64_t BusiestLink(const Placement& placement) {
  const auto others = static_cast<int64_t>(placement.size()) - 1;
  int64_t all = 0;
  for (const LaneRange& range : placement) all += NodesIn(range);
  int64_t busiest = 0;
  for (const LaneRange& range : placement) {
    const int64_t own = NodesIn(range);
    busiest = std::max({busiest, (own + 1) * others, all - own + others});
  }
  return busiest;
}

int64_t StepTimeOf(const Placement& placement, const PlacementCosts& costs) {
  const auto world = static_cast<int64_t>(placement.size());
  KEEL_CHECK(costs.lane_ns.size() == placement.size(), costs.lane_ns.size() << " of " << world);
  int64_t slowest = 0;
  for (size_t rank = 0; rank < placement.size(); ++rank) {
    slowest = std::max(slowest, costs.lane_ns[rank] * placement[rank].count());
  }
  return slowest + costs.link_ns * BusiestLink(placement) / world;
}

PlacementCosts Completed(const PlacementCosts& known) {
  std::vector<int64_t> measured;
  for (const int64_t lane : known.lane_ns) {
    if (lane > 0) measured.push_back(lane);
  }
  std::sort(measured.begin(), measured.end());
  const int64_t usual = measured.empty() ? kUnknownLane : measured[(measured.size() - 1) / 2];
  PlacementCosts all = known;
  for (int64_t& lane : all.lane_ns) {
    if (lane <= 0) lane = usual;
    lane = std::min(lane, kCostMax);
  }
  all.link_ns = measured.empty() ? kUnknownLink : std::clamp<int64_t>(known.link_ns, 0, kCostMax);
  return all;
}

Placement BestPlacement(int lanes, const PlacementCosts& costs) {
  const int world = static_cast<int>(costs.lane_ns.size());
  const PlacementCosts all = Completed(costs);
  Placement best = EvenPlacement(world, lanes);
  if (world == 1 || int64_t{world} * lanes * MostLanes(world, lanes) > kWaysMax) return best;
  Search search(lanes, all);
  for (int64_t most = 1; most <= search.nodes_max(); ++most) {
    Placement found = search.WithNodes(most);
    if (found.empty()) continue;
    if (StepTimeOf(found, all) < StepTimeOf(best, all)) best = std::move(found);
  }
  return best;
}

Placement SpreadOver(const std::vector<bool>& takes_part, const Placement& theirs) {
  Placement placement;
  size_t next = 0;
  int end = 0;
  for (const bool takes : takes_part) {
    placement.push_back(takes ? theirs.at(next++) : LaneRange{end, end});
    end = placement.back().end;
  }
  return placement;
}

PlacementCosts CostsOf(const std::vector<bool>& takes_part, const PlacementCosts& all) {
  PlacementCosts costs{{}, all.link_ns};
  for (size_t rank = 0; rank < takes_part.size(); ++rank) {
    if (takes_part[rank]) costs.lane_ns.push_back(all.lane_ns.at(rank));
  }
  return costs;
}

}  // namespace keel
