// GradientBuckets: the parameters of a model in buckets, with the memory in which the gradients of
// each come together and are exchanged. It lasts as long as the model, so no epoch has to touch
// fresh memory.
// Promises   Backward makes the last layers' gradients first, so the first bucket has those; all of
//            one bucket have one type and lie on one device.
// Does not   exchange anything (trainer/exchange/exchange.h). Only one exchange uses it at a time.
// Threads    one at a time.
// Errors     throws as ATen does: call it inside CatchTorch().
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "trainer/exchange/bucket.h"

namespace keel {

struct BucketLimits {
  size_t most_bytes = 25 << 20;
  size_t last_bytes = 1 << 20;   // of the bucket whose gradients backward makes last
};

class GradientBuckets {
 public:
  // A parameter's place: its bucket, and its index in that bucket.
  struct Seat {
    size_t bucket = 0;
    size_t index = 0;
  };

  // All of the parameters require a gradient.
  GradientBuckets(std::vector<at::Tensor> parameters, const BucketLimits& limits);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const Seat& SeatOf(size_t parameter) const { return seats_[parameter]; }
  // In the order in which they are exchanged.
  const std::vector<std::unique_ptr<ExchangeBucket>>& buckets() const { return buckets_; }

 private:
  const std::vector<at::Tensor> parameters_;
  std::vector<std::unique_ptr<ExchangeBucket>> buckets_;
  std::vector<Seat> seats_;   // by parameter
};

}  // namespace keel
