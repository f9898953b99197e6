// RecheckPlan: which lanes two workers compute in one step, whose results are then compared, and
// who is wrong where they differ.
// Promises   each worker computes one lane of another one again, of another host where there is
//            one; alone, one of its own, which finds only what does not happen twice. Who checks
//            whom changes from turn to turn, and comes to every lane. All members that ask come to
//            the same answers.
// Does not   compute or send anything (trainer/loop/recheck.h).
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/loop/lane_result.h"
#include "trainer/loop/vote_record.h"
#include "trainer/numerics/placement.h"

namespace keel {

struct RecheckTask {
  std::optional<int> own = {};     // this lane of ours is computed by somebody else, too
  std::optional<int> other = {};   // we compute this lane of `owner`, too
  int owner = -1;

  bool operator==(const RecheckTask&) const = default;
};

// Steps from one recheck to the next that cost half a percent of the time. All wait for the worker
// with the fewest lanes, for whom another one is the most.
uint64_t UsualRecheckEvery(const Placement& placement);

// By rank. `hosts`: where each one is.
std::vector<RecheckTask> PlanRecheck(uint64_t turn, const Placement& placement,
                                     const std::vector<std::string>& hosts);

// Two results of one lane differ.
struct Dispute {
  int lane = 0;
  int owner = 0;     // ranks
  int checker = 0;
  std::optional<int> third = {};   // who computes it, too, to decide; of another host than both
                                   // where there is one
  // Of one host with the third, so that they may be wrong together.
  std::optional<int> beside_third = {};

  bool IsAbout(int rank) const { return rank == owner || rank == checker || rank == third; }
  bool operator==(const Dispute&) const = default;
};
// The first one that the votes show; all members see the same.
std::optional<Dispute> DisputeIn(const std::vector<RecheckTask>& tasks,
                                 const std::vector<VoteRecord>& records,
                                 const std::vector<std::string>& hosts);

// What each of a dispute has computed: before the vote (not the third one), and once more.
struct Testimony {
  LaneResult owner = {};
  LaneResult owner_again = {};
  LaneResult checker = {};
  LaneResult checker_again = {};
  std::optional<LaneResult> third = {};
};
struct Verdict {
  std::optional<int> wrong = {};   // the rank; none: that cannot be told
  std::string reason = {};
};
Verdict Decide(const Dispute& dispute, const Testimony& testimony);

// By rank, who has other reduced gradients than most; nobody where no majority has the same.
struct SumsVerdict {
  bool differ = false;
  std::vector<int> wrong = {};
};
SumsVerdict CompareSums(const std::vector<VoteRecord>& records);

}  // namespace keel
