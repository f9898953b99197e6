// The first time ends before the second begins, so that there are copies of one reduction only.
#include "trainer/exchange/sum_proof.h"

#include <utility>

#include "trainer/exchange/slice_map.h"

namespace keel {

void SumProof::BeginStep(const std::optional<int>& turn) {
  turn_ = turn;
  slices_.clear();
  again_.clear();
  inputs_ = Digester();
  inputs_again_ = Digester();
  if (!turn) return;
  slices_.resize(static_cast<size_t>(group_.size()));
  again_.resize(static_cast<size_t>(group_.size()));
}

void SumProof::Note(const at::Tensor& sums, std::vector<Digester>& digesters) const {
  const SliceMap slices(sums.numel(), group_.size());
  for (int rank = 0; rank < group_.size(); ++rank) {
    const at::Tensor part = PartOf(sums, slices.Of(rank));
    digesters[static_cast<size_t>(rank)].Update(
        {static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
  }
}

Status SumProof::ReduceCopies(const LaneShares& shares, const at::Tensor& into,
                              const std::vector<TreeSum::Entry>& own,
                              ReductionScratch& scratch) {
  std::vector<TreeSum::Entry> nodes;
  for (const TreeSum::Entry& entry : own) {
    nodes.push_back({entry.node, entry.value.clone()});
    copies_.push_back(nodes.back().value);
  }
  // As without a proof, the last node lies where the sums arrive.
  const at::Tensor sums = nodes.empty() ? at::empty_like(into) : nodes.back().value;
  if (nodes.empty()) copies_.push_back(sums);
  FlatReduction reduction(group_, shares, sums, std::move(nodes), scratch, *turn_);
  reduction.NoteInputs(&inputs_again_);
  KEEL_TRY(reduction.Start());
  KEEL_TRY(reduction.Finish());
  KEEL_TRY(group_.AwaitReaders());
  Note(sums, again_);
  copies_.clear();
  return Ok();
}

Status SumProof::Reduce(const LaneShares& shares, const at::Tensor& into,
                        std::vector<TreeSum::Entry> own, ReductionScratch& scratch) {
  KEEL_TRY(ReduceCopies(shares, into, own, scratch));
  FlatReduction reduction(group_, shares, into, std::move(own), scratch);
  reduction.NoteInputs(&inputs_);
  KEEL_TRY(reduction.Start());
  KEEL_TRY(reduction.Finish());
  KEEL_TRY(group_.AwaitReaders());
  Note(into, slices_);
  return Ok();
}

std::optional<SumsMade> SumProof::Take() {
  if (!turn_) return std::nullopt;
  SumsMade made{.turn = *turn_, .slices = {}, .again = {}, .inputs = inputs_.Current(),
                .inputs_again = inputs_again_.Current()};
  for (const Digester& one : slices_) made.slices.push_back(one.Current());
  for (const Digester& one : again_) made.again.push_back(one.Current());
  BeginStep(std::nullopt);
  return made;
}

}  // namespace keel
