// GpuReducer: the mean over all lanes of flat tensors on a GPU, over NCCL, on a stream of its own.
// Promises   the same additions in the same order as FlatReduction makes. It reads its input after
//            everything that was enqueued on the current stream before. Await() returns once the
//            GPU has done all of it, or the group was aborted.
// Does not   wait for other members in Reduce(): it only enqueues. So far it ran with a stand-in
//            for NCCL, and never on a GPU.
// Threads    one at a time. All members enqueue in the same order.
// Errors     the group's, kTimeout among them. Throws as ATen does: call it inside CatchTorch().
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "base/result.h"
#include "trainer/exchange/flat_reduction.h"
#include "trainer/exchange/gpu_queue.h"
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

  // On whose work the tensors' next use depends.
  GpuQueue& queue() { return *queue_; }

 private:
  at::Tensor SliceOf(const at::Tensor& flat, int rank) const;
  void Follow(const at::Tensor& into);
  // What each member is sent, and what it sends; undefined: nothing, as for ourselves.
  using ByRank = std::vector<at::Tensor>;
  Status Exchange(const ByRank& out, const ByRank& in);
  Result<at::Tensor> AddOurSlice(const at::Tensor& into, const std::vector<TreeSum::Entry>& own);
  Status ShareSums(const at::Tensor& into, const at::Tensor& sum);

  EpochGroup& group_;
  const LaneShares& shares_;
  const std::unique_ptr<GpuQueue> queue_;
};

}  // namespace keel
