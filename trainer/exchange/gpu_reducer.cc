// All-to-all, additions, all-to-all, one after the other on the stream. It uses generic streams and
// events, so that no CUDA header is needed here.
#include "trainer/exchange/gpu_reducer.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "trainer/group/whereabouts.h"

namespace keel {
namespace {

constexpr int64_t kSliceAlignment = 64;
constexpr Duration kLook = std::chrono::microseconds(50);

}  // namespace

GpuReducer::GpuReducer(EpochGroup& group, const LaneShares& shares, c10::Device device)
    : group_(group), shares_(shares),
      stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {
  KEEL_CHECK(group_.has_nccl(), "tensors on a GPU in a group without NCCL");
}

int64_t GpuReducer::SliceBegin(const at::Tensor& flat, int rank) const {
  const int64_t blocks = (flat.numel() + kSliceAlignment - 1) / kSliceAlignment;
  return std::min(flat.numel(), blocks * rank / group_.size() * kSliceAlignment);
}

at::Tensor GpuReducer::SliceOf(const at::Tensor& flat, int rank) const {
  const int64_t begin = SliceBegin(flat, rank);
  return flat.narrow(0, begin, SliceBegin(flat, rank + 1) - begin);
}

void GpuReducer::FollowCurrentStream() {
  const c10::impl::VirtualGuardImpl device(stream_.device_type());
  c10::Event done(stream_.device_type());
  done.record(device.getStream(stream_.device()));
  done.block(stream_);
}

// After an abort the caller frees these tensors while work on them is still in the stream; this
// keeps their memory from being given to anybody else before that work is done.
void GpuReducer::KeepForStream(const at::Tensor& tensor) { tensor.record_stream(stream_); }

// The stream waits for the work. wait() would make this thread wait as well (PrepareForNccl()).
Status GpuReducer::Enqueue(
    const std::function<EpochGroup::GpuWork(c10d::Backend& nccl)>& post) {
  KEEL_TRY_ASSIGN(last_, group_.PostOnGpu(post));
  last_->synchronize();
  return Ok();
}

Status GpuReducer::Reduce(const at::Tensor& into, std::vector<TreeSum::Entry> own) {
  FollowCurrentStream();
  KeepForStream(into);
  for (const TreeSum::Entry& entry : own) KeepForStream(entry.value);
  const c10::StreamGuard here(stream_);
  KEEL_TRY_ASSIGN(const at::Tensor sum, AddOurSlice(into, own));
  return ShareSums(into, sum);
}

Result<at::Tensor> GpuReducer::AddOurSlice(const at::Tensor& into,
                                           const std::vector<TreeSum::Entry>& own) {
  const int64_t count = SliceOf(into, group_.rank()).numel();
  std::vector<at::Tensor> out;
  std::vector<at::Tensor> in;
  for (int rank = 0; rank < group_.size(); ++rank) {
    std::vector<at::Tensor> slices{at::empty({0}, into.options())};
    for (const TreeSum::Entry& entry : own) slices.push_back(SliceOf(entry.value, rank));
    out.push_back(slices.size() == 2 ? slices.back() : at::cat(slices));
    const auto nodes = static_cast<int64_t>(shares_.nodes[static_cast<size_t>(rank)].size());
    in.push_back(at::empty({nodes * count}, into.options()));
  }
  KEEL_TRY(Enqueue([&](c10d::Backend& nccl) { return nccl.alltoall(in, out); }));
  TreeSum sum;
  for (size_t rank = 0; rank < in.size(); ++rank) {
    int64_t offset = 0;
    for (const LaneNode& node : shares_.nodes[rank]) {
      sum.Push(node, in[rank].narrow(0, offset, count));
      offset += count;
    }
  }
  at::Tensor mean = at::empty({count}, into.options());
  sum.FinishMean(shares_.lanes, mean);
  return mean;
}

Status GpuReducer::ShareSums(const at::Tensor& into, const at::Tensor& sum) {
  std::vector<at::Tensor> out;
  std::vector<at::Tensor> in;
  for (int rank = 0; rank < group_.size(); ++rank) {
    out.push_back(sum);
    in.push_back(SliceOf(into, rank));
  }
  return Enqueue([&](c10d::Backend& nccl) { return nccl.alltoall(in, out); });
}

Status GpuReducer::AllReduce(const at::Tensor& into) {
  FollowCurrentStream();
  KeepForStream(into);
  const c10::StreamGuard here(stream_);
  std::vector<at::Tensor> one{into};
  KEEL_TRY(Enqueue([&](c10d::Backend& nccl) { return nccl.allreduce(one); }));
  at::Tensor(into).mul_(1.0 / shares_.lanes);
  return Ok();
}

// Polls, since Abort() could not end a wait for an event.
Status GpuReducer::Await() {
  const Whereabouts::Waiting waiting(group_.whereabouts(), Activity::kAnybody);
  c10::Event done(stream_.device_type());
  done.record(stream_);
  const Duration limit = group_.limit();
  const TimePoint deadline = RealClock().Monotonic() + limit;
  while (!done.query()) {
    KEEL_TRY(last_ ? group_.LookAt(last_) : group_.status());
    if (RealClock().Monotonic() >= deadline) {
      group_.Abort(Error{Code::kTimeout, "waited " + DurationText(limit) +
                                             " for the others' part of an exchange on the GPU"});
    }
    RealClock().SleepFor(kLook);
  }
  last_.reset();
  return group_.status();
}

}  // namespace keel
