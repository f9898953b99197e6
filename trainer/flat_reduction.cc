// Nodes to the owners of slices, sums back from them. A sum may be received where a node is still
// being sent from: its owner has the whole node before it can send the sum.
//
// Between workers that read each other's memory three notes go instead: where nodes lie and sums
// will (an offer), that the sums are ready, that they were taken. The last one keeps the sums from
// being overwritten before. A worker that breaks off overwrites them all the same, and another one
// may then read nonsense and succeed: but who broke off has not voted for this step, so that nobody
// will ever apply it.
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
      scratch_(scratch), offers_(shares.nodes.size()), offers_in_(group), sums_in_(group),
      taken_in_(group), out_(group) {
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
  taken_tag_ = group_.NextTag(TagKind::kTaken);
  KEEL_TRY(ReceiveOffers(nodes_tag));
  KEEL_TRY(ReceiveNodes(nodes_tag));
  KEEL_TRY(SendNodes(nodes_tag));
  return ReceiveSums();
}

at::Tensor FlatReduction::Scratch(size_t slot, const Chunk& chunk) {
  while (slot >= scratch_.size()) scratch_.push_back(at::empty_like(chunk.Of(into_)));
  return scratch_[slot].narrow(0, 0, chunk.count);
}

Status FlatReduction::ReceiveOffers(Tag tag) {
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank == group_.rank() || !CanRead(rank)) continue;
    const auto at = static_cast<size_t>(rank);
    offers_[at] = at::empty({static_cast<int64_t>(shares_.nodes[at].size()) + 1}, at::kLong);
    KEEL_TRY(offers_in_.Receive(offers_[at], rank, tag));
  }
  return Ok();
}

// What is read is added at once, so that one place serves all chunks and stays in the cache.
Status FlatReduction::ReceiveNodes(Tag tag) {
  size_t read = 0;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (offers_[static_cast<size_t>(rank)].defined()) {
      read += shares_.nodes[static_cast<size_t>(rank)].size();
    }
  }
  size_t received = read;
  for (const Chunk& chunk : ChunksOf(group_.rank())) {
    nodes_in_.push_back({chunk, {}, EpochGroup::Batch(group_), {}});
    Arriving& arriving = nodes_in_.back();
    for (int rank = 0; rank < group_.size(); ++rank) {
      const auto& nodes = shares_.nodes[static_cast<size_t>(rank)];
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (rank == group_.rank()) {
          arriving.nodes.push_back({nodes[i], chunk.Of(own_[i].value)});
        } else if (offers_[static_cast<size_t>(rank)].defined()) {
          arriving.nodes.push_back({nodes[i], Scratch(arriving.to_read.size(), chunk)});
          arriving.to_read.push_back({rank, i, arriving.nodes.back().value});
        } else {
          arriving.nodes.push_back({nodes[i], Scratch(received++, chunk)});
          KEEL_TRY(arriving.batch.Receive(arriving.nodes.back().value, rank, tag));
        }
      }
    }
  }
  return Ok();
}

// To each owner chunk by chunk, as it receives them; not all to the same one at first.
Status FlatReduction::SendNodes(Tag tag) {
  std::vector<int64_t> places;
  for (const TreeSum::Entry& entry : own_) {
    places.push_back(reinterpret_cast<int64_t>(entry.value.const_data_ptr()));
  }
  places.push_back(reinterpret_cast<int64_t>(into_.const_data_ptr()));
  const at::Tensor offer = at::tensor(places, at::kLong);
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();
    if (IsReadBy(to)) {
      KEEL_TRY(out_.Send(offer, to, tag));
      continue;
    }
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
    if (IsReadBy(from) && HasSlice(group_.rank())) {
      KEEL_TRY(taken_in_.Receive(at::empty({1}, at::kByte), from, taken_tag_));
    }
    if (CanRead(from)) {
      if (!HasSlice(from)) continue;
      sums_to_read_.push_back({from, EpochGroup::Batch(group_)});
      const at::Tensor note = at::empty({1}, at::kByte);
      KEEL_TRY(sums_to_read_.back().ready.Receive(note, from, sums_tag_));
      continue;
    }
    for (const Chunk& chunk : ChunksOf(from)) {
      KEEL_TRY(sums_in_.Receive(chunk.Of(into_), from, sums_tag_));
    }
  }
  return Ok();
}

Status FlatReduction::Read(int rank, size_t place, const Chunk& chunk, const at::Tensor& into) {
  const int64_t* places = offers_[static_cast<size_t>(rank)].const_data_ptr<int64_t>();
  const auto begin = static_cast<uint64_t>(chunk.begin) * into_.element_size();
  return group_.Read(rank, static_cast<uint64_t>(places[place]) + begin, into);
}

Status FlatReduction::ReadNodes(const Arriving& arriving) {
  for (const ToRead& one : arriving.to_read) {
    KEEL_TRY(Read(one.rank, one.node, arriving.chunk, one.into));
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
    if (!IsReadBy(to)) KEEL_TRY(out_.Send(mean, to, sums_tag_));
  }
  return Ok();
}

Status FlatReduction::OfferSums() {
  if (!HasSlice(group_.rank())) return Ok();
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();
    if (IsReadBy(to)) KEEL_TRY(out_.Send(at::zeros({1}, at::kByte), to, sums_tag_));
  }
  return Ok();
}

Status FlatReduction::ReadSums(SumsToRead& sums) {
  KEEL_TRY(sums.ready.Wait());
  const Chunk slice{SliceBegin(sums.rank), SliceBegin(sums.rank + 1) - SliceBegin(sums.rank)};
  const size_t place = shares_.nodes[static_cast<size_t>(sums.rank)].size();
  KEEL_TRY(Read(sums.rank, place, slice, slice.Of(into_)));
  return out_.Send(at::zeros({1}, at::kByte), sums.rank, taken_tag_);
}

Status FlatReduction::Finish() {
  KEEL_TRY(offers_in_.Wait());
  for (Arriving& arriving : nodes_in_) {
    KEEL_TRY(arriving.batch.Wait());
    KEEL_TRY(ReadNodes(arriving));
    KEEL_TRY(AddAndSend(arriving));
  }
  KEEL_TRY(OfferSums());
  for (SumsToRead& sums : sums_to_read_) KEEL_TRY(ReadSums(sums));
  KEEL_TRY(sums_in_.Wait());
  KEEL_TRY(taken_in_.Wait());
  return out_.Wait();
}

}  // namespace keel
