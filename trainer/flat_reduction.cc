// Nodes to the owners of slices, sums back from them. A sum may be received where a node is still
// being sent from: its owner has the whole node before it can send the sum.
#include "trainer/flat_reduction.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

// Slices begin at multiples of this many elements, so that they are added in whole cache lines.
constexpr int64_t kSliceAlignment = 64;
// Small enough to stay in the cache between the socket, the additions and the socket again, and for
// sums to go out while nodes still come in.
constexpr int64_t kChunkBytesMax = 1 << 20;

}  // namespace

LaneShares::LaneShares(int world, int all_lanes) : lanes(all_lanes) {
  for (int rank = 0; rank < world; ++rank) nodes.push_back(NodesOf(LanesOf(rank, world, lanes)));
}

FlatReduction::FlatReduction(EpochGroup& group, const LaneShares& shares, at::Tensor into,
                             std::vector<TreeSum::Entry> own, ReductionScratch& scratch)
    : group_(group), shares_(shares), into_(std::move(into)), own_(std::move(own)),
      scratch_(scratch), sums_in_(group), out_(group) {
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

std::vector<FlatReduction::Chunk> FlatReduction::ChunksOf(int rank) const {
  const int64_t most = kChunkBytesMax / static_cast<int64_t>(into_.element_size());
  std::vector<Chunk> chunks;
  const int64_t end = SliceBegin(rank + 1);
  for (int64_t begin = SliceBegin(rank); begin < end; begin += most) {
    chunks.push_back({begin, std::min(most, end - begin)});
  }
  return chunks;
}

Status FlatReduction::Start() {
  const Tag nodes_tag = group_.NextTag(TagKind::kNodes);
  sums_tag_ = group_.NextTag(TagKind::kSums);
  KEEL_TRY(ReceiveNodes(nodes_tag));
  KEEL_TRY(SendNodes(nodes_tag));
  return ReceiveSums();
}

Status FlatReduction::ReceiveNodes(Tag tag) {
  size_t used = 0;
  for (const Chunk& chunk : ChunksOf(group_.rank())) {
    nodes_in_.push_back({chunk, {}, EpochGroup::Batch(group_)});
    Arriving& arriving = nodes_in_.back();
    for (int rank = 0; rank < group_.size(); ++rank) {
      const auto& nodes = shares_.nodes[static_cast<size_t>(rank)];
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (rank == group_.rank()) {
          arriving.nodes.push_back({nodes[i], chunk.Of(own_[i].value)});
          continue;
        }
        if (used == scratch_.size()) scratch_.push_back(at::empty_like(chunk.Of(into_)));
        arriving.nodes.push_back({nodes[i], scratch_[used++]});
        KEEL_TRY(arriving.batch.Receive(arriving.nodes.back().value, rank, tag));
      }
    }
  }
  return Ok();
}

// To each owner chunk by chunk, as it receives them; not all to the same one at first.
Status FlatReduction::SendNodes(Tag tag) {
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();
    for (const Chunk& chunk : ChunksOf(to)) {
      for (const TreeSum::Entry& entry : own_) {
        KEEL_TRY(out_.Send(chunk.Of(entry.value), to, tag));
      }
    }
  }
  return Ok();
}

Status FlatReduction::ReceiveSums() {
  for (int step = 1; step < group_.size(); ++step) {
    const int from = (group_.rank() + step) % group_.size();
    for (const Chunk& chunk : ChunksOf(from)) {
      KEEL_TRY(sums_in_.Receive(chunk.Of(into_), from, sums_tag_));
    }
  }
  return Ok();
}

Status FlatReduction::AddAndSend(Arriving& arrived) {
  TreeSum sum;
  for (TreeSum::Entry& entry : arrived.nodes) sum.Push(entry.node, std::move(entry.value));
  at::Tensor mean = arrived.chunk.Of(into_);
  sum.FinishMean(shares_.lanes, mean);
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();
    KEEL_TRY(out_.Send(mean, to, sums_tag_));
  }
  return Ok();
}

Status FlatReduction::Finish() {
  for (Arriving& arriving : nodes_in_) {
    KEEL_TRY(arriving.batch.Wait());
    KEEL_TRY(AddAndSend(arriving));
  }
  KEEL_TRY(sums_in_.Wait());
  return out_.Wait();
}

}  // namespace keel
