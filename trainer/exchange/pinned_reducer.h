// PinnedReducer: c10d's Reducer as the exchange uses it: with a hook of ours for each bucket, on a
// group that need not be able to do anything, in buckets that stay as they are.
// Promises   the hook is called as soon as a bucket is full, in the order of buckets, by the thread
//            of the backward.
// Threads    one at a time.
// Errors     throws as ATen does: call it inside CatchTorch().
#pragma once

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace keel {

// Never rebuilds its buckets: it would broadcast their new order on a group that cannot broadcast.
class PinnedReducer final : public c10d::Reducer {
 public:
  using Reducer::Reducer;
  void Pin() { has_rebuilt_bucket_ = true; }
};

struct PinnedReducerSpec {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<size_t>> buckets;   // indices of parameters
  int rank = 0;
  int size = 1;
  size_t bucket_bytes_max = 0;
  size_t first_bucket_bytes_max = 0;
  using Hook = std::function<c10::intrusive_ptr<c10::ivalue::Future>(c10d::GradBucket&)>;
  Hook hook;
};
std::unique_ptr<PinnedReducer> OpenReducer(PinnedReducerSpec spec);

// Backward makes the last layers' gradients first, so the first bucket holds those.
std::vector<std::vector<size_t>> BucketsOf(const std::vector<at::Tensor>& parameters,
                                           size_t first_bytes_max, size_t bytes_max);

}  // namespace keel
