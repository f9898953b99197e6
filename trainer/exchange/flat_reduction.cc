// Sends nodes to the owners of slices, and sums back. A sum may be received where a node is still
// being sent from, because its owner has the whole node before it can send the sum.
//
// Workers that read each other's memory use notes instead: where nodes and sums lie (an offer),
// that the sums are there, that all was taken. The last one keeps sums from being overwritten
// early. A worker that breaks off may overwrite them all the same, and a reader may then take
// garbage unnoticed; but the worker that broke off never notes "taken" and never votes for this
// step, so nobody will ever apply it.
#include "trainer/exchange/flat_reduction.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

// Small enough that a chunk stays in the cache from the socket through the additions back to the
// socket, and that sums go out while nodes still come in.
constexpr int64_t kChunkBytesMax = 1 << 20;

}  // namespace

LaneShares::LaneShares(const Placement& placement, int all_lanes) : lanes(all_lanes) {
  for (const LaneRange& range : placement) nodes.push_back(NodesOf(range));
}

FlatReduction::FlatReduction(EpochGroup& group, const LaneShares& shares, at::Tensor into,
                             std::vector<TreeSum::Entry> own, ReductionScratch& scratch, int turn)
    : group_(group), shares_(shares), into_(std::move(into)),
      slices_(into_.numel(), group.size(), turn),
      own_(std::move(own)), scratch_(scratch), places_(shares.nodes.size()), sums_in_(group),
      out_(group) {
  const auto& expected = shares_.nodes[static_cast<size_t>(group_.rank())];
  KEEL_CHECK(own_.size() == expected.size(), own_.size() << " nodes, not " << expected.size());
  for (size_t i = 0; i < own_.size(); ++i) {
    KEEL_CHECK(own_[i].node == expected[i] && own_[i].value.numel() == into_.numel(),
               "node " << i << " begins at lane " << own_[i].node.begin);
  }
}

std::vector<Slice> FlatReduction::ChunksOf(int rank) const {
  return slices_.ChunksOf(rank, kChunkBytesMax / static_cast<int64_t>(into_.element_size()));
}

Status FlatReduction::Start() {
  number_ = group_.NextReduction();
  const Tag nodes_tag = group_.NextTag(TagKind::kNodes);
  sums_tag_ = group_.NextTag(TagKind::kSums);
  KEEL_TRY(OfferNodes());
  KEEL_TRY(ReceiveNodes(nodes_tag));
  KEEL_TRY(SendNodes(nodes_tag));
  return ReceiveSums();
}

// In a smaller group, chunks may be larger.
at::Tensor FlatReduction::Scratch(size_t slot, const Slice& chunk) {
  if (slot >= scratch_.size()) scratch_.resize(slot + 1);
  at::Tensor& place = scratch_[slot];
  if (!place.defined() || place.numel() < chunk.count) {
    place = at::empty({chunk.count}, into_.options());
  }
  return place.narrow(0, 0, chunk.count);
}

Status FlatReduction::OfferNodes() {
  bool read = false;
  for (int rank = 0; rank < group_.size(); ++rank) read |= Reads(rank);
  if (!read) return Ok();
  std::vector<uint64_t> places;
  for (const TreeSum::Entry& entry : own_) {
    places.push_back(reinterpret_cast<uint64_t>(entry.value.const_data_ptr()));
  }
  places.push_back(reinterpret_cast<uint64_t>(into_.const_data_ptr()));
  return group_.Offer(number_, places);
}

// Nodes that are read are added at once, so one place serves all chunks and stays in the cache.
Status FlatReduction::ReceiveNodes(Tag tag) {
  size_t read = 0;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (Reads(rank)) read += shares_.nodes[static_cast<size_t>(rank)].size();
  }
  size_t received = read;
  for (const Slice& chunk : ChunksOf(group_.rank())) {
    nodes_in_.push_back({chunk, {}, EpochGroup::Batch(group_)});
    Arriving& arriving = nodes_in_.back();
    for (int rank = 0; rank < group_.size(); ++rank) {
      const auto& nodes = shares_.nodes[static_cast<size_t>(rank)];
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (rank == group_.rank()) {
          arriving.nodes.push_back({.node = nodes[i], .here = PartOf(own_[i].value, chunk)});
        } else if (Reads(rank)) {
          arriving.nodes.push_back({.node = nodes[i], .here = {}, .rank = rank, .place = i});
        } else {
          arriving.nodes.push_back({.node = nodes[i], .here = Scratch(received++, chunk)});
          KEEL_TRY(arriving.batch.Receive(arriving.nodes.back().here, rank, tag));
        }
      }
    }
  }
  return Ok();
}

// Sends to each owner chunk by chunk, in its order of receiving. Workers start at different owners.
Status FlatReduction::SendNodes(Tag tag) {
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();
    if (Reads(to)) continue;
    for (const Slice& chunk : ChunksOf(to)) {
      for (const TreeSum::Entry& entry : own_) {
        KEEL_TRY(out_.Send(PartOf(entry.value, chunk), to, tag));
      }
    }
  }
  return Ok();
}

Status FlatReduction::ReceiveSums() {
  for (int step = 1; step < group_.size(); ++step) {
    const int from = (group_.rank() + step) % group_.size();
    if (Reads(from)) continue;
    for (const Slice& chunk : ChunksOf(from)) {
      KEEL_TRY(sums_in_.Receive(PartOf(into_, chunk), from, sums_tag_));
    }
  }
  return Ok();
}

Status FlatReduction::Read(int rank, size_t place, const Slice& chunk, const at::Tensor& into) {
  const auto begin = static_cast<uint64_t>(chunk.begin) * into_.element_size();
  return group_.Read(rank, places_[static_cast<size_t>(rank)].at(place) + begin, into);
}

Status FlatReduction::AwaitOffers() {
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (!Reads(rank)) continue;
    KEEL_TRY(group_.Await(rank, Note::kOffered, number_));
    KEEL_TRY_ASSIGN(places_[static_cast<size_t>(rank)], group_.PlacesOf(rank, number_));
  }
  return Ok();
}

Status FlatReduction::Add(const Arriving& arrived) {
  TreeSum sum;
  size_t slot = 0;
  for (const Source& source : arrived.nodes) {
    at::Tensor value = source.here;
    if (!value.defined()) {
      value = Scratch(slot++, arrived.chunk);
      KEEL_TRY(Read(source.rank, source.place, arrived.chunk, value));
    }
    if (inputs_ != nullptr) {
      inputs_->Update({static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()});
    }
    sum.Push(source.node, std::move(value));
  }
  at::Tensor mean = PartOf(into_, arrived.chunk);
  sum.FinishMean(shares_.lanes, mean);
  return Ok();
}

Status FlatReduction::SendSum(const Slice& chunk) {
  for (int step = 1; step < group_.size(); ++step) {
    const int to = (group_.rank() + step) % group_.size();
    if (!Reads(to)) KEEL_TRY(out_.Send(PartOf(into_, chunk), to, sums_tag_));
  }
  return Ok();
}

Status FlatReduction::ReadSums(int rank) {
  KEEL_TRY(group_.Await(rank, Note::kSummed, number_));
  const Slice slice = slices_.Of(rank);
  const size_t place = shares_.nodes[static_cast<size_t>(rank)].size();
  return slice.count > 0 ? Read(rank, place, slice, PartOf(into_, slice)) : Ok();
}

Status FlatReduction::Finish() {
  KEEL_TRY(AwaitOffers());
  for (Arriving& arriving : nodes_in_) {
    KEEL_TRY(arriving.batch.Wait());
    KEEL_TRY(Add(arriving));
    KEEL_TRY(SendSum(arriving.chunk));
  }
  KEEL_TRY(group_.Tell(Note::kSummed, number_));
  for (int step = 1; step < group_.size(); ++step) {
    const int from = (group_.rank() + step) % group_.size();
    if (Reads(from)) KEEL_TRY(ReadSums(from));
  }
  KEEL_TRY(sums_in_.Wait());
  KEEL_TRY(out_.Wait());
  return group_.Tell(Note::kTaken, number_);
}

}  // namespace keel
