// ExchangeBucket: where the gradients of a worker's lanes come together, for some parameters.
// Promises   gradients are added in the order of trainer/numerics/lanes.h, each one as soon as it
//            is made, with as few places in memory as there are sums kept: the second lane of a
//            pair is added where the first one lies. What remains to be exchanged after a step is
//            in sum().
// Does not   exchange anything. Take a parameter's gradient twice in one backward: it throws.
// Threads    one at a time; TakeGradient() on that of the backward.
// Errors     throws as ATen does: call it inside CatchTorch().
#pragma once

#include <ATen/ATen.h>

#include <deque>
#include <vector>

#include "trainer/exchange/flat_reduction.h"
#include "trainer/numerics/lanes.h"
#include "trainer/numerics/tree_sum.h"

namespace keel {

// Where a lane's gradients go.
struct LanePlace {
  bool adds = false;        // to what the lane before has left there
  bool in_bucket = false;   // in the memory in which the means arrive
  LaneNode whole{0, 0};     // the lanes whose sum is there after this lane; size 0: none yet

  bool operator==(const LanePlace&) const = default;
};

// `plain`: lanes are added up one after the other, not in the order of a tree.
LanePlace PlaceOf(int lane, const LaneRange& lanes, bool plain);

class ExchangeBucket {
 public:
  // `buffer`: flat memory for the gradients of these parameters, in this order.
  ExchangeBucket(std::vector<at::Tensor> parameters, at::Tensor buffer);

  void BeginStep();
  void BeginLane(const LanePlace& lane);
  // `made` is what the lane has just added to parameter `i`'s gradient. It is moved to its place
  // while it is still in the cache, so that the memory of one layer serves the next one.
  void TakeGradient(size_t i, const at::Tensor& made);
  // Parameters that the lane's loss did not reach count as zero. Afterwards no grad() shows the
  // sum.
  void EndLane();
  // Ends the worker's last lane: grad() stays, to become the mean.
  void EndLastLane();

  // For a worker without lanes: what arrived in buffer() becomes its gradients.
  void TakeBufferAsGradients();

  size_t parameters() const { return parameters_.size(); }
  const at::Tensor& buffer() const { return bucket_.tensor; }
  size_t places() const { return 1 + flats_.size(); }   // in memory: the bucket, and ours
  TreeSum& sum() { return sum_; }
  ReductionScratch& scratch() { return scratch_; }

 private:
  // One flat tensor with a view for each parameter.
  struct Flat {
    at::Tensor tensor;
    std::vector<at::Tensor> views;
  };

  Flat ViewsOf(at::Tensor tensor) const;
  const Flat& FreeFlat();
  void CountAsZero(size_t i);

  std::vector<at::Tensor> parameters_;
  const Flat bucket_;
  std::deque<Flat> flats_;        // each holds sum_'s entry of the same index; they do not move
  LanePlace lane_;
  const Flat* place_ = nullptr;   // where the gradients of the lane under way go
  std::vector<bool> reached_;     // by the lane's loss
  TreeSum sum_;
  ReductionScratch scratch_;
};

}  // namespace keel
