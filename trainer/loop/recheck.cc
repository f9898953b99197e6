// Digests travel in the votes; only where they differ is more sent.
#include "trainer/loop/recheck.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/exchange/gather.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

constexpr char kLeaves[] = "it leaves, and the step is made again";

std::vector<std::string> TensorNames(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& one : tensors) names.push_back(one.name);
  return names;
}

Error Garbled(const std::string& whose) {
  return {Code::kCorrupt, "the results of a lane that " + whose + " sent are not complete"};
}

}  // namespace

Recheck::Recheck(const EpochParts& parts)
    : state_(parts.state), group_(parts.group), all_compute_alike_(!parts.peer.inexact_allowed) {
  for (int rank = 0; rank < group_.size(); ++rank) hosts_.push_back(group_.HostOf(rank));
}

RecheckTask Recheck::TaskFor(const Placement& lanes) {
  tasks_.clear();
  const uint64_t every = state_.config().recheck_every.value_or(UsualRecheckEvery(lanes));
  // Workers of other kernels may come to other bits.
  if (every == 0 || !all_compute_alike_ || state_.step() % every != every - 1) return {};
  tasks_ = PlanRecheck(state_.step() / every, lanes, hosts_);
  return tasks_[static_cast<size_t>(rank())];
}

Status Recheck::FillIn(const LaneWork& work, VoteRecord& record) const {
  if (tasks_.empty()) return Ok();
  if (work.own) record.own_lane = work.own->All();
  if (work.other) record.other_lane = work.other->All();
  KEEL_TRY_ASSIGN(record.sums, CatchTorch("comparing gradients", [&] {
    std::vector<at::Tensor> sums;
    for (const at::Tensor& parameter : state_.parameters()) sums.push_back(parameter.grad());
    return DigestOfTensors(sums);
  }));
  return Ok();
}

Result<Recheck::Outcome> Recheck::Judge(const std::vector<VoteRecord>& records,
                                        const LaneWork& work, Exchange& exchange) {
  if (tasks_.empty()) return Outcome();
  const std::optional<Dispute> dispute = DisputeIn(tasks_, records, hosts_);
  if (!dispute) return JudgeSums(records);
  KEEL_TRY_ASSIGN(const Testimony testimony, Hear(*dispute, work, exchange));
  return JudgeLane(*dispute, testimony);
}

Result<Recheck::Outcome> Recheck::JudgeSums(const std::vector<VoteRecord>& records) {
  using What = Outcome::What;
  const SumsVerdict verdict = CompareSums(records);
  if (!verdict.differ) return Outcome();
  const bool again = state_.ExchangeDoubted(state_.step()) == state_.step();
  if (verdict.wrong.empty()) {
    if (again) {
      return Outcome{What::kStop, StepText() + ": workers hold other sums of the gradients than "
                                               "others, twice, and no majority agrees"};
    }
    Tell("sums", {}, "no majority holds the same", "the step is made again");
    return Outcome{What::kAgain};
  }
  const auto& wrong = verdict.wrong;
  if (std::find(wrong.begin(), wrong.end(), rank()) != wrong.end()) {
    return Error{Code::kCorrupt, StepText() + ": the gradients' sums of " + group_.NameOf(rank()) +
                                     " are not those that most others have: this machine, or its "
                                     "network, changes bits"};
  }
  Tell("sums", wrong, "most others hold the same", kLeaves);
  return Outcome{What::kAgain};
}

// Those whom the dispute is about compute the lane, once more, while the others wait for them.
Result<Testimony> Recheck::Hear(const Dispute& dispute, const LaneWork& work,
                                Exchange& exchange) {
  std::vector<LaneResult> mine;
  if (rank() == dispute.owner && work.own) mine.push_back(*work.own);
  if (rank() == dispute.checker && work.other) mine.push_back(*work.other);
  if (dispute.IsAbout(rank())) {
    group_.whereabouts().Place("recheck");
    KEEL_TRY_ASSIGN(LaneResult again, ComputeAgain(state_, exchange, dispute.lane));
    mine.push_back(std::move(again));
  }
  KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, GatherRecords(group_, EncodeResults(mine)));
  const auto of = [&](int rank, size_t count) -> Result<std::vector<LaneResult>> {
    KEEL_TRY_ASSIGN(std::vector<LaneResult> results,
                    DecodeResults(all[static_cast<size_t>(rank)], state_.parameters().size()));
    if (results.size() != count) return Garbled(group_.NameOf(rank));
    return results;
  };
  const bool alone = dispute.owner == dispute.checker;
  KEEL_TRY_ASSIGN(const std::vector<LaneResult> owner, of(dispute.owner, alone ? 3 : 2));
  Testimony testimony{.owner = owner.front(), .owner_again = owner.back()};
  KEEL_TRY_ASSIGN(const std::vector<LaneResult> checker, of(dispute.checker, alone ? 3 : 2));
  testimony.checker = checker[alone ? 1 : 0];
  testimony.checker_again = checker.back();
  if (!dispute.third) return testimony;
  KEEL_TRY_ASSIGN(const std::vector<LaneResult> third, of(*dispute.third, 1));
  testimony.third = third.front();
  return testimony;
}

Result<Recheck::Outcome> Recheck::JudgeLane(const Dispute& dispute, const Testimony& testimony) {
  using What = Outcome::What;
  const Verdict verdict = Decide(dispute, testimony);
  const std::string lane = "lane " + std::to_string(dispute.lane);
  const std::string differs = DifferencesOf(testimony.owner, testimony.checker,
                                            TensorNames(state_.model().tensors.parameters));
  const std::string reason = differs + ": " + verdict.reason;
  if (verdict.wrong == rank()) {
    return Error{Code::kCorrupt, StepText() + ", " + lane + ": " + group_.NameOf(rank()) +
                                     " computes other bits than it should (" + reason +
                                     "): do not trust this machine"};
  }
  if (verdict.wrong) {
    Tell(lane, {*verdict.wrong}, reason, kLeaves);
    return Outcome{What::kAgain};
  }
  const std::vector<int> both = {dispute.owner, dispute.checker};
  if (state_.config().on_corruption == OnCorruption::kContinue) {
    Tell(lane, both, reason, "the job goes on with the former's, as --on-corruption=continue says");
    return Outcome{};
  }
  return Outcome{What::kStop, StepText() + ", " + lane + ": " + NamesOf(both, " or ") +
                                  " computes other bits than it should (" + reason +
                                  "). Find out which machine it is, or go on all the same with "
                                  "--on-corruption=continue"};
}

std::string Recheck::NamesOf(const std::vector<int>& ranks, const std::string& between) const {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(group_.NameOf(rank));
  return JoinList(names, between);
}

void Recheck::Tell(const std::string& what, const std::vector<int>& wrong,
                   const std::string& reason, const std::string& then) const {
  int teller = 0;
  while (std::find(wrong.begin(), wrong.end(), teller) != wrong.end()) ++teller;
  if (rank() != teller % group_.size()) return;   // where all may be wrong, the first one
  LogError("corruption", {{"step", state_.step()},
                          {"in", what},
                          {"member", NamesOf(wrong, ", ")},
                          {"reason", reason},
                          {"note", then}});
}

}  // namespace keel
