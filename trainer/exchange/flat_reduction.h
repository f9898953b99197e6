// FlatReduction: the mean over all lanes of one flat tensor, computed while it is exchanged.
// Promises   Start() posts and returns. After a Finish() that succeeded `into` holds the mean, the
//            same bits on all workers and for every number of them, if all of them finish. After
//            an error of either, or once this object is gone, nothing of it is in flight. Each
//            worker adds one slice, so if every worker ships one node the volume is that of a ring
//            all-reduce. Two workers that can read each other's memory read large tensors instead
//            of sending them.
// Does not   copy its input: it may overwrite that, and it must be left alone until the reduction
//            is done and the group's AwaitReaders() has returned.
// Threads    one at a time; Start() and Finish() may run on different ones. All workers start
//            their reductions in the same order, and finish them in that order.
// Errors     those of the group, which is aborted then. Throws as ATen does: call it inside
//            CatchTorch().
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "trainer/exchange/slice_map.h"
#include "trainer/group/epoch_group.h"
#include "trainer/numerics/lanes.h"
#include "trainer/numerics/placement.h"
#include "trainer/numerics/tree_sum.h"

namespace keel {

// The nodes that each worker of a group ships.
struct LaneShares {
  int lanes = 1;
  std::vector<std::vector<LaneNode>> nodes;  // by rank

  LaneShares(const Placement& placement, int lanes);
};

inline at::Tensor PartOf(const at::Tensor& flat, const Slice& slice) {
  return flat.narrow(0, slice.begin, slice.count);
}

// Tensors that are reused from step to step, so that their memory is not touched anew.
using ReductionScratch = std::vector<at::Tensor>;

class FlatReduction {
 public:
  // `own` holds this worker's nodes, each as long as `into`, which may be one of them. `shares` and
  // `scratch` outlive this object. `turn`: who adds which slice (SliceMap).
  FlatReduction(EpochGroup& group, const LaneShares& shares, at::Tensor into,
                std::vector<TreeSum::Entry> own, ReductionScratch& scratch, int turn = 0);

  // A worker that starts more than this many without finishing any would wait for itself.
  static constexpr size_t kStartedMax = SharedNotes::kOffersMax;
  Status Start();
  Status Finish();
  // Before Start(): `inputs` is told of all that this worker adds, before it does.
  void NoteInputs(Digester* inputs) { inputs_ = inputs; }

 private:
  // A node of a chunk: it is here already, or will be read just before it is added.
  struct Source {
    LaneNode node;
    at::Tensor here;
    int rank = 0;        // the worker whose memory holds it, if it is not here
    size_t place = 0;    // its index among that worker's places
  };
  // The nodes of one chunk of our slice, from all workers, in lane order.
  struct Arriving {
    Slice chunk;
    std::vector<Source> nodes;
    EpochGroup::Batch batch;
  };

  std::vector<Slice> ChunksOf(int rank) const;
  bool Reads(int rank) const { return group_.ReadsMutually(rank, into_.nbytes()); }
  at::Tensor Scratch(size_t slot, const Slice& chunk);
  Status OfferNodes();
  Status ReceiveNodes(Tag tag);
  Status SendNodes(Tag tag);
  Status ReceiveSums();
  Status AwaitOffers();
  Status Add(const Arriving& arrived);
  Status SendSum(const Slice& chunk);
  Status ReadSums(int rank);
  Status Read(int rank, size_t place, const Slice& chunk, const at::Tensor& into);

  EpochGroup& group_;
  const LaneShares& shares_;
  at::Tensor into_;
  const SliceMap slices_;
  std::vector<TreeSum::Entry> own_;
  ReductionScratch& scratch_;
  Digester* inputs_ = nullptr;
  uint32_t number_ = 0;
  Tag sums_tag_;
  // For each worker that we read, by rank: where its nodes begin, and last, where its sums will
  // begin.
  std::vector<std::vector<uint64_t>> places_;
  std::vector<Arriving> nodes_in_;
  EpochGroup::Batch sums_in_;
  EpochGroup::Batch out_;
};

}  // namespace keel
