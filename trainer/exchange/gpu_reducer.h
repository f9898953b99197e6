// GpuReducer: the mean over all lanes of flat tensors on a GPU, over NCCL, on a stream of its own.
// Promises   the same additions in the same order as FlatReduction makes. It reads its input after
//            everything that was enqueued on the current stream before. Await() returns once the
//            GPU has done all of it, or the group was aborted.
// Does not   block in Reduce(): it only enqueues. So far it was only compiled, and never ran on a
//            GPU.
// Threads    one at a time. All members enqueue in the same order.
// Errors     the group's, kTimeout among them. Throws as ATen does: call it inside CatchTorch().
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <functional>
#include <vector>

#include "base/result.h"
#include "trainer/exchange/flat_reduction.h"
#include "trainer/group/epoch_group.h"

namespace keel {

class GpuReducer {
 public:
  // The group has an NCCL backend. `shares` outlives it.
  GpuReducer(EpochGroup& group, const LaneShares& shares, c10::Device device);

  // `own` as for FlatReduction; `into` may be one of them.
  Status Reduce(const at::Tensor& into, std::vector<TreeSum::Entry> own);
  // NCCL's own sum, times 1/lanes.
  Status AllReduce(const at::Tensor& into);
  Status Await();

  const c10::Stream& stream() const { return stream_; }

 private:
  int64_t SliceBegin(const at::Tensor& flat, int rank) const;
  at::Tensor SliceOf(const at::Tensor& flat, int rank) const;
  void FollowCurrentStream();
  void KeepForStream(const at::Tensor& tensor);
  Status Enqueue(const std::function<EpochGroup::GpuWork(c10d::Backend& nccl)>& post);
  Result<at::Tensor> AddOurSlice(const at::Tensor& into, const std::vector<TreeSum::Entry>& own);
  Status ShareSums(const at::Tensor& into, const at::Tensor& sum);

  EpochGroup& group_;
  const LaneShares& shares_;
  const c10::Stream stream_;
  EpochGroup::GpuWork last_;   // the last work that was enqueued; null: awaited
};

}  // namespace keel
