// Nodes to the owners of slices, sums back from them. A sum may be received where a node is still
// being sent from: its owner has the whole node before it can send the sum.
#include "trainer/flat_reduction.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

// Slices begin at multiples of this many elements, so that they are added in whole cache lines.
constexpr int64_t kSliceAlignment = 64;

}  // namespace

LaneShares::LaneShares(int world, int all_lanes) : lanes(all_lanes) {
  for (int rank = 0; rank < world; ++rank) nodes.push_back(NodesOf(LanesOf(rank, world, lanes)));
}

FlatReduction::FlatReduction(EpochGroup& group, const LaneShares& shares, at::Tensor into,
                             std::vector<TreeSum::Entry> own, ReductionScratch& scratch)
    : group_(group), shares_(shares), into_(std::move(into)), own_(std::move(own)),
      scratch_(scratch), nodes_in_(group), sums_in_(group), out_(group) {
  const auto& expected = shares_.nodes[static_cast<size_t>(group_.rank())];
  KEEL_CHECK(own_.size() == expected.size(), own_.size() << " nodes, not " << expected.size());
  for (size_t i = 0; i < own_.size(); ++i) {
    KEEL_CHECK(own_[i].node == expected[i] && own_[i].value.numel() == into_.numel(),
               "node " << i << " begins at lane " << own_[i].node.begin);
  }
}

int64_t FlatReduction::SliceBegin(int rank) const {
  const int64_t blocks = (into_.numel() + kSliceAlignment - 1) / kSliceAlignment;
  return std::min(into_.numel(), blocks * rank / group_.size() * kSliceAlignment);
}

at::Tensor FlatReduction::SliceOf(const at::Tensor& flat, int rank) const {
  const int64_t begin = SliceBegin(rank);
  return flat.narrow(0, begin, SliceBegin(rank + 1) - begin);
}

Status FlatReduction::Start() {
  const Tag nodes_tag = group_.NextTag(TagKind::kNodes);
  sums_tag_ = group_.NextTag(TagKind::kSums);
  KEEL_TRY(ReceiveNodes(nodes_tag));
  KEEL_TRY(SendNodes(nodes_tag));
  return ReceiveSums();
}

Status FlatReduction::ReceiveNodes(Tag tag) {
  const at::Tensor slice = SliceOf(into_, group_.rank());
  if (slice.numel() == 0) return Ok();
  size_t used = 0;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const auto& nodes = shares_.nodes[static_cast<size_t>(rank)];
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (rank == group_.rank()) {
        nodes_.push_back({nodes[i], SliceOf(own_[i].value, rank)});
        continue;
      }
      if (used == scratch_.size()) scratch_.push_back(at::empty_like(slice));
      nodes_.push_back({nodes[i], scratch_[used++]});
      KEEL_TRY(nodes_in_.Receive(nodes_.back().value, rank, tag));
    }
  }
  return Ok();
}

Status FlatReduction::SendNodes(Tag tag) {
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();  // not all to the same one at first
    for (const TreeSum::Entry& entry : own_) {
      const at::Tensor slice = SliceOf(entry.value, to);
      if (slice.numel() > 0) KEEL_TRY(out_.Send(slice, to, tag));
    }
  }
  return Ok();
}

Status FlatReduction::ReceiveSums() {
  for (int step = 1; step < group_.size(); ++step) {
    const int from = (group_.rank() + step) % group_.size();
    const at::Tensor slice = SliceOf(into_, from);
    if (slice.numel() > 0) KEEL_TRY(sums_in_.Receive(slice, from, sums_tag_));
  }
  return Ok();
}

Status FlatReduction::SendSums() {
  at::Tensor slice = SliceOf(into_, group_.rank());
  if (slice.numel() == 0) return Ok();
  TreeSum sum;
  for (TreeSum::Entry& entry : nodes_) sum.Push(entry.node, std::move(entry.value));
  sum.FinishMean(shares_.lanes, slice);
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();
    KEEL_TRY(out_.Send(slice, to, sums_tag_));
  }
  return Ok();
}

Status FlatReduction::Finish() {
  KEEL_TRY(nodes_in_.Wait());
  KEEL_TRY(SendSums());
  KEEL_TRY(sums_in_.Wait());
  return out_.Wait();
}

}  // namespace keel
