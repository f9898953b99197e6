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
  std::optional<int> sums_turn = {};   // of the sums, which are made twice (SumsMade)

  bool operator==(const RecheckTask&) const = default;
};

// Steps from one recheck to the next that cost half a percent of the time. All wait for the worker
// with the fewest lanes, for whom another one is the most.
uint64_t UsualRecheckEvery(const Placement& placement);

// By rank. `hosts`: where each one is.
std::vector<RecheckTask> PlanRecheck(uint64_t turn, const Placement& placement,
                                     const std::vector<std::string>& hosts);

// Somebody who has nothing to do with a dispute, and computes the lane, too.
struct Witness {
  int rank = 0;
  // Of the two, who is of the same host, so that they may be wrong together.
  std::optional<int> beside = {};

  bool operator==(const Witness&) const = default;
};
// Two results of one lane differ.
struct Dispute {
  int lane = 0;
  int owner = 0;     // ranks
  int checker = 0;
  // One of a third host; else one beside each of the two, as far as there are any.
  std::vector<Witness> witnesses = {};

  bool IsAbout(int rank) const;
};
// All that the votes show, the same for all members.
std::vector<Dispute> DisputesIn(const std::vector<RecheckTask>& tasks,
                                const std::vector<VoteRecord>& records,
                                const std::vector<std::string>& hosts);

// What each of a dispute has computed: the two before the vote, and all once more.
struct Testimony {
  LaneResult owner = {};
  LaneResult owner_again = {};
  LaneResult checker = {};
  LaneResult checker_again = {};
  std::vector<LaneResult> witnesses = {};   // in their order
};
struct Verdict {
  std::optional<int> wrong = {};   // the rank; none: that cannot be told
  std::string reason = {};
};
Verdict Decide(const Dispute& dispute, const Testimony& testimony);

// Whose digest is another one than that of most; nobody where no majority has the same.
struct Minority {
  bool differ = false;
  std::vector<int> wrong = {};   // ranks
};
Minority MinorityOf(const std::vector<std::optional<Digest>>& digests);

}  // namespace keel
