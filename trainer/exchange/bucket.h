// ExchangeBucket: where the gradients that a worker's lanes make for one bucket of c10d's Reducer
// come together.
// Promises   gradients are added in the order of trainer/numerics/lanes.h, each one as soon as it
//            is made, in as few places as there are sums kept: the second lane of a pair is added
//            where the first one lies. What a step leaves to be exchanged is in sum(), the last of
//            it in the Reducer's own memory.
// Does not   exchange anything. Take a parameter's gradient twice in one backward: it throws.
// Threads    one at a time; that of the backward for TakeGradient().
// Errors     throws as ATen does: call it inside a Guard.
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
  bool in_bucket = false;   // in the Reducer's memory
  LaneNode whole{0, 0};     // whose sum is there after this lane; of size 0: none yet

  bool operator==(const LanePlace&) const = default;
};

// `plain`: one lane after the other is added up, in no tree's order.
LanePlace PlaceOf(int lane, const LaneRange& lanes, bool plain);

class ExchangeBucket {
 public:
  // `buffer`: the Reducer's memory for gradients of these parameters, in this order.
  ExchangeBucket(std::vector<at::Tensor> parameters, at::Tensor buffer);

  void BeginStep();
  void BeginLane(const LanePlace& lane);
  // `made`: what the lane has just added to parameter `i`'s gradient. That is moved to where it
  // belongs while it is in the cache, so that one layer's memory serves the next one.
  void TakeGradient(size_t i, const at::Tensor& made);
  bool IsReached(size_t i) const { return reached_[i]; }
  // Parameters that the lane's loss did not reach count as zero. No grad() shows the sum then.
  void EndLane();
  // Of the last one, whose loss has reached all: they stay to become the mean.
  void EndLastLane();

  // Of a worker without lanes: what arrived in buffer().
  void TakeBufferAsGradients();

  const at::Tensor& buffer() const { return bucket_.tensor; }
  size_t places() const { return 1 + flats_.size(); }   // in memory: the bucket, and ours
  TreeSum& sum() { return sum_; }
  ReductionScratch& scratch() { return scratch_; }

 private:
  // With one view a parameter, laid out as the Reducer lays out its buckets.
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
  const Flat* place_ = nullptr;   // of the lane under way
  std::vector<bool> reached_;     // by its loss
  TreeSum sum_;
  ReductionScratch scratch_;
};

}  // namespace keel
