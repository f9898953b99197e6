// Recheck: in some steps every worker computes a lane of another one, too, and the votes compare
// what came of it, and the sums of all gradients, before anything is applied. Where they differ, a
// third worker decides who is wrong; that one fails, and the others make the step again.
//
// | the votes show | all of them then | this step |
// |---|---|---|
// | the same results | go on | is applied |
// | others of a lane, or other sums, and whose are wrong | meet without it | is made again |
// | others, and not whose are wrong: the first time | meet | is made again |
// | now the same sums, which shows whose were wrong | go on without it | is applied |
// | the same once more, of a lane; --on-corruption=continue | go on | is applied |
// | the same once more, of sums twice, otherwise | end the job | is not applied |
//
// Promises   all members that have the same votes come to the same outcome.
// Does not   find what goes wrong in the same way on both machines, or on a single one each time.
//            Look at lanes or states while members receive the state, but only at sums.
// Threads    the training thread.
// Errors     those of the group and of the user's program; kCorrupt: this worker is the one that is
//            wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "elastic/protocol/blame.h"
#include "trainer/exchange/exchange.h"
#include "trainer/loop/differing.h"
#include "trainer/loop/epoch_parts.h"
#include "trainer/loop/evidence_keeper.h"
#include "trainer/loop/lane_work.h"
#include "trainer/loop/recheck_plan.h"
#include "trainer/loop/vote_record.h"
#include "trainer/numerics/placement.h"

namespace keel {

class Recheck {
 public:
  explicit Recheck(const EpochParts& parts);

  // As the members have agreed (ReformPlan). `unproven`: the first step in which all compute is
  // rechecked. `alike`: all compute by the same kernels.
  void BeginEpoch(int64_t every, bool unproven, bool alike) {
    every_ = every;
    unproven_ = unproven;
    all_compute_alike_ = alike;
  }
  bool all_compute_alike() const { return all_compute_alike_; }
  // Of the step that begins. `lanes`: who computes which ones. `all_hold`: nobody receives the
  // state beside the step.
  RecheckTask TaskFor(const Placement& lanes, bool all_hold);
  Status FillIn(const LaneWork& work, VoteRecord& record) const;

  struct Outcome {
    enum class What { kApply, kAgain, kStop };
    What what = What::kApply;
    std::string reason = {};   // to stop
  };
  // Of what members began the step with, in every step where they tell it: whoever began with other
  // bits comes to other results without computing wrongly. Who catches up is judged apart.
  Result<Outcome> JudgeBegun(const std::vector<VoteRecord>& records,
                             const std::function<bool(size_t rank)>& catches_up) const;
  Result<Outcome> Judge(const std::vector<VoteRecord>& records, const LaneWork& work,
                        Exchange& exchange);
  // Of this worker, since the last call.
  WorkerChecks TakeChecks() { return std::exchange(checks_, {}); }

 private:
  int rank() const { return group_.rank(); }
  Outcome Again(const std::string& in, const std::string& reason);
  Result<Outcome> JudgeSums(const std::vector<VoteRecord>& records, const LaneWork& work);
  Result<Outcome> JudgeMadeTwice(const std::vector<VoteRecord>& records, const SumsMade& made);
  std::vector<int> RanksOfMembers(const std::vector<std::string>& names) const;
  Result<const SumClaims*> CommonClaims();
  // `again`: the others make the step again; else they go on.
  Result<Outcome> NameWhoAdded(const std::vector<int>& wrong, const std::string& reason,
                               bool again);
  Result<Outcome> JudgeDispute(const Dispute& dispute, const LaneWork& work, Exchange& exchange);
  void TellUnheard(const Dispute& dispute, const Error& why) const;
  Result<Testimony> Hear(const Dispute& dispute, const LaneWork& work, Exchange& exchange);
  Result<std::vector<LaneResult>> Testify(const Dispute& dispute, const LaneWork& work,
                                          Exchange& exchange);
  Result<Outcome> JudgeLane(const Dispute& dispute, const Testimony& testimony,
                            const std::vector<DifferingTensor>& differing);
  Outcome JudgeBoth(const Dispute& dispute, const std::string& reason);
  LaneEvidence EvidenceOf(const Dispute& dispute, const Testimony& testimony) const;
  void Save(LaneEvidence evidence, const std::optional<int>& wrong) const;
  bool IsTeller(const std::vector<int>& wrong) const;
  std::string StepText() const { return "step " + std::to_string(state_.step()); }
  // Logged once, by the first member that is not `wrong`.
  void Tell(const std::string& what, const std::vector<int>& wrong, const std::string& reason,
            const std::string& then) const;
  std::string NamesOf(const std::vector<int>& ranks, const std::string& between) const;

  TrainState& state_;
  EpochGroup& group_;
  const Keeping* const keeping_;     // null: nothing is saved
  EvidenceKeeper* const keeper_;     // null: no evidence, either
  const std::string fingerprint_;
  std::vector<std::string> members_;   // by rank
  std::vector<std::string> hosts_;
  bool all_compute_alike_ = false;
  int64_t every_ = 0;
  bool unproven_ = false;            // somebody is
  uint64_t turn_ = 0;                // of the recheck under way
  WorkerChecks checks_;
  std::vector<RecheckTask> tasks_;   // by rank, of the step under way; empty: no recheck
  bool all_hold_ = true;             // in that step
};

}  // namespace keel
