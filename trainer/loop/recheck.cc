// Digests travel in the votes; only where they differ is more sent.
#include "trainer/loop/recheck.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/exchange/gather.h"
#include "trainer/group/nccl_links.h"
#include "trainer/loop/held_bits.h"
#include "trainer/numerics/tensor_digest.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

constexpr char kLeaves[] = "it leaves, and the step is made again";
constexpr char kMadeAgain[] = "the step is made again";

// The second time decides nothing if somebody was not there the first time.
constexpr int64_t kSumsMadeMax = 3;

// It is copied before it is written.
constexpr uint64_t kEvidenceBytesMax = uint64_t{1} << 30;

std::vector<std::string> TensorNames(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& one : tensors) names.push_back(one.name);
  return names;
}

bool Holds(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

size_t Index(int rank) { return static_cast<size_t>(rank); }

Digest DigestOfThese(const std::vector<Digest>& digests) {
  Digester all;
  for (const Digest& digest : digests) all.Update(digest.bytes);
  return all.Current();
}

// Those who read it break the group, and are no worse themselves.
Error Garbled(const std::string& whose) {
  return {Code::kPeerLost, "the results of a lane that " + whose + " sent are not complete"};
}

}  // namespace

Recheck::Recheck(const EpochParts& parts)
    : state_(parts.state), group_(parts.group), keeping_(parts.keeping),
      keeper_(parts.peer.evidence), fingerprint_(parts.peer.fingerprint) {
  for (int rank = 0; rank < group_.size(); ++rank) {
    members_.push_back(group_.MemberOf(rank));
    hosts_.push_back(group_.HostOf(rank));
  }
}

RecheckTask Recheck::TaskFor(const Placement& lanes, bool all_hold) {
  tasks_.clear();
  all_hold_ = all_hold;
  const uint64_t every = every_ == MemberReport::kUsual ? UsualRecheckEvery(lanes)
                                                        : static_cast<uint64_t>(every_);
  // Workers of other kernels may come to other bits.
  if (every == 0 || !all_compute_alike_) return {};
  const bool is_due = state_.step() % every == every - 1;
  if (!is_due && state_.doubts() == 0 && !(unproven_ && all_hold)) return {};
  turn_ = state_.step() / every;
  // Who receives the state has nothing yet to compute a lane with, but adds for all.
  tasks_ = all_hold ? PlanRecheck(turn_, lanes, hosts_) : std::vector<RecheckTask>(hosts_.size());
  const int sums_turn = TurnOfSums(turn_, hosts_, state_.doubts());
  for (RecheckTask& task : tasks_) task.sums_turn = sums_turn;
  return tasks_[Index(rank())];
}

Status Recheck::FillIn(const LaneWork& work, VoteRecord& record) const {
  if (tasks_.empty()) return Ok();
  if (work.own) record.own_lane = work.own->All();
  if (work.other) record.other_lane = work.other->All();
  KEEL_TRY_ASSIGN(record.sums, CatchTorch("comparing gradients", [&] {
    std::vector<at::Tensor> sums;
    for (const at::Tensor& parameter : state_.parameters()) sums.push_back(parameter.grad());
    if (all_hold_) {
      const Digest part = state_.DigestOfTurn(turn_);
      record.piece = record.piece ? DigestOfThese({*record.piece, part}) : part;
    }
    return DigestOfTensors(sums);
  }));
  if (work.sums) {
    record.slices = DigestOfThese(work.sums->slices);
    record.slices_again = DigestOfThese(work.sums->again);
    record.inputs = work.sums->inputs;
    record.inputs_again = work.sums->inputs_again;
  }
  return Ok();
}

Result<Recheck::Outcome> Recheck::Judge(const std::vector<VoteRecord>& records,
                                        const LaneWork& work, Exchange& exchange) {
  if (tasks_.empty()) return Outcome();
  const std::vector<Dispute> disputes = DisputesIn(tasks_, records, hosts_);
  const RecheckTask& own = tasks_[Index(rank())];
  checks_.rechecks += int{own.own.has_value()} + int{own.other.has_value()};
  for (const Dispute& dispute : disputes) {
    checks_.differences += int{dispute.owner == rank() || dispute.checker == rank()};
  }
  // Until a step has passed a recheck: this epoch may end before a word is spoken, and of several
  // disputes only the first is judged.
  if (!disputes.empty()) {
    unproven_ = true;
    state_.SetUnproven(true);
  }
  for (const Dispute& dispute : disputes) {
    KEEL_TRY_ASSIGN(Outcome outcome, JudgeDispute(dispute, work, exchange));
    if (outcome.what != Outcome::What::kApply) return outcome;
  }
  KEEL_TRY_ASSIGN(Outcome outcome, JudgeSums(records, work));
  if (outcome.what == Outcome::What::kApply && all_hold_) {
    unproven_ = false;
    state_.SetUnproven(false);
  }
  return outcome;
}

Result<Recheck::Outcome> Recheck::JudgeDispute(const Dispute& dispute, const LaneWork& work,
                                               Exchange& exchange) {
  const auto unheard = [&](const Error& why) {
    TellUnheard(dispute, why);
    return why;
  };
  const Result<Testimony> testimony = Hear(dispute, work, exchange);
  if (!testimony.ok()) return unheard(testimony.error());
  const auto differing = GatherDiffering(state_, group_, dispute, *testimony, work);
  if (!differing.ok()) return unheard(differing.error());
  return JudgeLane(dispute, *testimony, *differing);
}

// The epoch ends: whoever is asked next time may be another one.
void Recheck::TellUnheard(const Dispute& dispute, const Error& why) const {
  if (dispute.owner != rank() && dispute.checker != rank()) return;
  LogError("corruption-not-judged", {{"step", state_.step()},
                                     {"in", "lane " + std::to_string(dispute.lane)},
                                     {"members", NamesOf({dispute.owner, dispute.checker}, ", ")},
                                     {"reason", why.message},
                                     {"note", "the step is made again, and lanes are compared"}});
}

Recheck::Outcome Recheck::Again(const std::string& in, const std::string& reason) {
  state_.NoteDoubt();
  Tell(in, {}, reason, kMadeAgain);
  return {Outcome::What::kAgain};
}

Result<Recheck::Outcome> Recheck::JudgeBegun(
    const std::vector<VoteRecord>& records,
    const std::function<bool(size_t rank)>& catches_up) const {
  HeldBits states;
  HeldBits parameters("parameters");
  for (size_t rank = 0; rank < records.size(); ++rank) {
    if (catches_up(rank)) continue;
    states.Add(static_cast<int>(rank), records[rank].piece);
    parameters.Add(static_cast<int>(rank), records[rank].parameters);
  }
  for (const HeldBits* held : {&states, &parameters}) {
    const Status judged = held->Judge(group_, state_.step());
    if (judged.ok()) continue;
    if (judged.error().code != Code::kPeerLost) return judged.error();
    return Outcome{Outcome::What::kAgain};
  }
  return Outcome();
}

Result<Recheck::Outcome> Recheck::JudgeSums(const std::vector<VoteRecord>& records,
                                            const LaneWork& work) {
  for (const auto digest : {&VoteRecord::slices, &VoteRecord::sums, &VoteRecord::slices_again}) {
    std::vector<std::optional<Digest>> all;
    for (const VoteRecord& record : records) all.push_back(record.*digest);
    const Minority minority = MinorityOf(all);
    if (!minority.differ) continue;
    // What most have may have changed before they had it: others have made it, too.
    const bool is_vouched_for =
        digest == &VoteRecord::slices &&
        std::any_of(minority.wrong.begin(), minority.wrong.end(), [&](int rank) {
          return records[Index(rank)].slices == records[Index(rank)].slices_again;
        });
    if (!minority.wrong.empty() && !is_vouched_for) {
      if (Holds(minority.wrong, rank())) {
        return Error{Code::kCorrupt, StepText() + ": the gradients' sums of " +
                                         group_.NameOf(rank()) +
                                         " are not those that most others have: this machine "
                                         "changes bits, or what it receives is changed on the way"};
      }
      Tell("sums", minority.wrong, "most others hold the same", kLeaves);
      return Outcome{Outcome::What::kAgain};
    }
    if (state_.doubts() == 0) return Again("sums", "workers hold different ones");
    return Outcome{Outcome::What::kStop,
                   StepText() + ": workers hold other sums of the gradients than others, though "
                                "the step was made again, and nobody can tell whose are right"};
  }
  return work.sums ? JudgeMadeTwice(records, *work.sums) : Outcome();
}

// All members hold the same digests here.
Result<Recheck::Outcome> Recheck::JudgeMadeTwice(const std::vector<VoteRecord>& records,
                                                 const SumsMade& made) {
  SumClaims now{members_, hosts_, made, {}, {}};
  for (const VoteRecord& record : records) {
    now.inputs.push_back(record.inputs);
    now.inputs_again.push_back(record.inputs_again);
  }
  SumVerdict verdict;
  if (state_.doubts() > 0) {
    KEEL_TRY_ASSIGN(const SumClaims* const before, CommonClaims());
    if (before != nullptr) verdict = DecideSums(*before, now);
  }
  const std::vector<int> pair = RanksOfMembers(DisputedBy(now));
  const auto disputed = std::count(pair.begin(), pair.end(), rank());
  checks_.rechecks += disputed;
  checks_.differences += disputed;
  const std::vector<int> wrong = RanksOfMembers(verdict.wrong);
  if (!wrong.empty()) return NameWhoAdded(wrong, verdict.reason, made.Differ());
  if (!made.Differ()) return Outcome();
  if (state_.doubts() + 1 >= kSumsMadeMax) {
    return Outcome{Outcome::What::kStop,
                   StepText() + ": " + NamesOf(pair, " or ") +
                       " adds gradients to other sums than it should, " +
                       std::to_string(kSumsMadeMax) + " times" +
                       (verdict.reason.empty() ? "" : " (" + verdict.reason + ")") +
                       ". Find out which machine it is"};
  }
  state_.NoteDoubt(std::move(now));
  Tell("sums", {}, NamesOf(pair, " and ") + " came to different ones", kMadeAgain);
  return Outcome{Outcome::What::kAgain};
}

std::vector<int> Recheck::RanksOfMembers(const std::vector<std::string>& names) const {
  std::vector<int> ranks;
  for (int one = 0; one < group_.size(); ++one) {
    if (std::count(names.begin(), names.end(), members_[Index(one)]) > 0) ranks.push_back(one);
  }
  return ranks;
}

// Those of the time before. Null: somebody was not there, and all must come to one outcome; or the
// slices were others, since there were more members, or fewer.
Result<const SumClaims*> Recheck::CommonClaims() {
  const SumClaims* const before = state_.doubted_sums();
  const Digest mine = before != nullptr ? before->DigestOfAll() : Digest();
  KEEL_TRY_ASSIGN(const std::vector<Digest> all, GatherDigests(group_, mine));
  const bool all_know = std::count(all.begin(), all.end(), mine) == group_.size();
  return all_know && before != nullptr && before->members.size() == members_.size() ? before
                                                                                    : nullptr;
}

Result<Recheck::Outcome> Recheck::NameWhoAdded(const std::vector<int>& wrong,
                                               const std::string& reason, bool again) {
  if (!Holds(wrong, rank())) {
    Tell("sums", wrong, reason, again ? kLeaves : "it leaves, and the others go on");
    state_.SetDoubts(0);   // who is left may well be right
    return Outcome{again ? Outcome::What::kAgain : Outcome::What::kApply};
  }
  state_.NoteUnfit();
  return Error{Code::kCorrupt, StepText() + ": " + group_.NameOf(rank()) +
                                   " adds gradients to other sums than it should (" + reason +
                                   "): do not trust this machine"};
}

// Those whom the dispute is about compute the lane, once more, while the others wait for them.
Result<Testimony> Recheck::Hear(const Dispute& dispute, const LaneWork& work,
                                Exchange& exchange) {
  KEEL_TRY_ASSIGN(const std::vector<LaneResult> mine, Testify(dispute, work, exchange));
  KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, GatherRecords(group_, EncodeResults(mine)));
  const auto of = [&](int rank, size_t count) -> Result<std::vector<LaneResult>> {
    Result<std::vector<LaneResult>> results =
        DecodeResults(all[static_cast<size_t>(rank)], state_.parameters().size());
    if (results.ok() && results->size() == count) return results;
    group_.Abort(Garbled(group_.NameOf(rank)));
    return group_.status().error();
  };
  const bool alone = dispute.owner == dispute.checker;
  KEEL_TRY_ASSIGN(const std::vector<LaneResult> owner, of(dispute.owner, alone ? 3 : 2));
  Testimony testimony{.owner = owner.front(), .owner_again = owner.back()};
  KEEL_TRY_ASSIGN(const std::vector<LaneResult> checker, of(dispute.checker, alone ? 3 : 2));
  testimony.checker = checker[alone ? 1 : 0];
  testimony.checker_again = checker.back();
  for (const Witness& witness : dispute.witnesses) {
    KEEL_TRY_ASSIGN(const std::vector<LaneResult> result, of(witness.rank, 1));
    testimony.witnesses.push_back(result.front());
  }
  return testimony;
}

// What this worker computed before, and computes now.
Result<std::vector<LaneResult>> Recheck::Testify(const Dispute& dispute, const LaneWork& work,
                                                 Exchange& exchange) {
  std::vector<LaneResult> mine;
  if (rank() == dispute.owner && work.own) mine.push_back(*work.own);
  if (rank() == dispute.checker && work.other) mine.push_back(*work.other);
  if (!dispute.IsAbout(rank())) return mine;
  group_.whereabouts().Place("recheck");
  Result<LaneResult> again = ComputeAgain(state_, exchange, {dispute.lane});
  if (again.ok()) {
    mine.push_back(*std::move(again));
    return mine;
  }
  if (state_.config().device.is_cuda()) LeaveIfLost(again.error());
  if (again.error().code != Code::kForeign) return again.error();
  return Error{Code::kInvalid, group_.NameOf(rank()) + ", " + again.error().message};
}

Result<Recheck::Outcome> Recheck::JudgeLane(const Dispute& dispute, const Testimony& testimony,
                                            const std::vector<DifferingTensor>& differing) {
  const Verdict verdict = Decide(dispute, testimony);
  const std::string differs = DifferencesOf(testimony.owner, testimony.checker,
                                            TensorNames(state_.model().tensors.parameters));
  KEEL_TRY_ASSIGN(const std::string elements, CatchTorch("comparing results", [&] {
                    return ElementsText(differing);
                  }));
  const std::string reason = differs + elements + ": " + verdict.reason;
  LaneEvidence evidence = EvidenceOf(dispute, testimony);
  evidence.differing = differing;
  evidence.verdict = (verdict.wrong ? group_.NameOf(*verdict.wrong) + " is wrong: " : "") + reason;
  const std::string lane = "lane " + std::to_string(dispute.lane);
  if (verdict.wrong && verdict.wrong != rank()) Tell(lane, {*verdict.wrong}, reason, kLeaves);
  Save(std::move(evidence), verdict.wrong);
  if (!verdict.wrong) return JudgeBoth(dispute, reason);
  if (verdict.wrong == rank()) {
    state_.NoteUnfit();
    return Error{Code::kCorrupt, StepText() + ", " + lane + ": " + group_.NameOf(rank()) +
                                     " computes other bits than it should (" + reason +
                                     "): do not trust this machine"};
  }
  return Outcome{Outcome::What::kAgain};
}

// Nobody can tell which one is wrong.
Recheck::Outcome Recheck::JudgeBoth(const Dispute& dispute, const std::string& reason) {
  const std::string lane = "lane " + std::to_string(dispute.lane);
  const bool alone = dispute.owner == dispute.checker;
  if (state_.doubts() == 0) return Again(lane, reason);
  std::vector<int> both = {dispute.owner};
  if (!alone) both.push_back(dispute.checker);
  if (state_.config().on_corruption == OnCorruption::kContinue) {
    Tell(lane, both, reason, "the first result counts, as --on-corruption=continue says");
    return Outcome{};
  }
  return Outcome{Outcome::What::kStop,
                 StepText() + ", " + lane + ": " + NamesOf(both, " or ") +
                     " computes other bits than it should (" + reason +
                     (alone ? "). Do not trust this machine, unless the program itself comes to "
                              "another result each time: then give --recheck-every=0"
                            : "). Find out which machine it is, or whether the program itself "
                              "comes to another result each time; --on-corruption=continue goes "
                              "on all the same")};
}

LaneEvidence Recheck::EvidenceOf(const Dispute& dispute, const Testimony& testimony) const {
  LaneEvidence evidence{.step = state_.step(), .lane = dispute.lane};
  evidence.fingerprint = keeping_ != nullptr ? keeping_->resume.fingerprint : fingerprint_;
  evidence.numbers = state_.registry().NumbersText();
  evidence.parameters = TensorNames(state_.model().tensors.parameters);
  const auto claim = [&](int rank, const char* role, bool is_second, const LaneResult& result) {
    evidence.claims.push_back({group_.NameOf(rank), role, is_second, result});
  };
  claim(dispute.owner, "owner", false, testimony.owner);
  claim(dispute.checker, "checker", false, testimony.checker);
  claim(dispute.owner, "owner", true, testimony.owner_again);
  claim(dispute.checker, "checker", true, testimony.checker_again);
  for (size_t i = 0; i < dispute.witnesses.size(); ++i) {
    claim(dispute.witnesses[i].rank, "witness", true, testimony.witnesses[i]);
  }
  return evidence;
}

// By one of those who tell the truth, while it goes on.
void Recheck::Save(LaneEvidence evidence, const std::optional<int>& wrong) const {
  if (!IsTeller(wrong ? std::vector{*wrong} : std::vector<int>())) return;
  std::string folder = state_.config().evidence_dir;
  if (folder.empty() && keeping_ != nullptr) folder = keeping_->resume.root;
  const bool is_wanted = !folder.empty() && folder != kNoEvidence && keeper_ != nullptr &&
                         keeper_->Wants(evidence.step);
  if (!is_wanted) return;
  const NamedTensors model = EvidenceTensors(state_);
  uint64_t bytes = 0;
  for (const NamedTensor& one : model) bytes += one.tensor.nbytes();
  if (bytes > kEvidenceBytesMax) {
    return LogWarn("evidence-not-saved",
                   {{"reason", "the model, with what is kept beside it, is larger than " +
                                  BytesText(kEvidenceBytesMax)}});
  }
  // It is of use without samples, too.
  Result<Batch> batch = BatchOf(state_, evidence.lane);
  const Result<NamedTensors> copied = CatchTorch("copying the model", [&] {
    NamedTensors copies;
    for (const NamedTensor& one : model) {
      copies.push_back({one.name, one.tensor.detach().to(at::kCPU, /*non_blocking=*/false,
                                                         /*copy=*/true)});
    }
    if (batch.ok() && batch->tag == nullptr) {
      evidence.batch = Changed(*batch, [](const at::Tensor& one) {
        return one.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
      });
    }
    return copies;
  });
  if (!copied.ok()) return LogWarn("evidence-not-saved", {{"reason", copied.error().message}});
  keeper_->Save(folder, std::move(evidence), *copied);
}

std::string Recheck::NamesOf(const std::vector<int>& ranks, const std::string& between) const {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(group_.NameOf(rank));
  return JoinList(names, between);
}

// The first one that is not wrong; where all may be, the first one.
bool Recheck::IsTeller(const std::vector<int>& wrong) const {
  int teller = 0;
  while (Holds(wrong, teller)) ++teller;
  return rank() == teller % group_.size();
}

void Recheck::Tell(const std::string& what, const std::vector<int>& wrong,
                   const std::string& reason, const std::string& then) const {
  if (!IsTeller(wrong)) return;
  LogError("corruption", {{"step", state_.step()},
                          {"in", what},
                          {"member", NamesOf(wrong, ", ")},
                          {"reason", reason},
                          {"note", then}});
}

}  // namespace keel
