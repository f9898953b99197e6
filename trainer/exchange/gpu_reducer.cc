// All-to-all, additions, all-to-all, one after the other in the queue.
#include "trainer/exchange/gpu_reducer.h"

#include <utility>

#include "base/clock.h"
#include "trainer/group/whereabouts.h"

namespace keel {
namespace {

constexpr Duration kLook = std::chrono::microseconds(50);

}  // namespace

GpuReducer::GpuReducer(EpochGroup& group, const LaneShares& shares, c10::Device device)
    : group_(group), shares_(shares), queue_(OpenGpuQueue(device)) {
  KEEL_CHECK(group_.has_nccl(), "tensors on a GPU in a group without NCCL");
}

at::Tensor GpuReducer::SliceOf(const at::Tensor& flat, int rank) const {
  return PartOf(flat, SliceMap(flat.numel(), group_.size()).Of(rank));
}

// After an abort the caller frees its tensors while work on them is still in the queue.
void GpuReducer::Follow(const at::Tensor& into) {
  queue_->FollowCurrentStream();
  queue_->Keep(into);
}

Status GpuReducer::Exchange(const ByRank& out, const ByRank& in) {
  std::vector<NcclPiece> sent;
  std::vector<NcclPiece> received;
  const auto add = [](std::vector<NcclPiece>& pieces, const at::Tensor& tensor, size_t rank) {
    if (!tensor.defined() || tensor.numel() == 0) return;
    KEEL_CHECK(tensor.is_contiguous(), "a tensor of " << tensor.sizes());
    pieces.push_back({tensor.mutable_data_ptr(), tensor.nbytes(), static_cast<int>(rank)});
  };
  for (size_t rank = 0; rank < out.size(); ++rank) {
    add(sent, out[rank], rank);
    add(received, in[rank], rank);
  }
  return group_.ExchangeOnGpu(sent, received, queue_->stream());
}

Status GpuReducer::Reduce(const at::Tensor& into, std::vector<TreeSum::Entry> own) {
  Follow(into);
  for (const TreeSum::Entry& entry : own) queue_->Keep(entry.value);
  KEEL_TRY_ASSIGN(const at::Tensor sum, AddOurSlice(into, own));
  return ShareSums(into, sum);
}

Result<at::Tensor> GpuReducer::AddOurSlice(const at::Tensor& into,
                                           const std::vector<TreeSum::Entry>& own) {
  const auto us = static_cast<size_t>(group_.rank());
  const int64_t count = SliceOf(into, group_.rank()).numel();
  ByRank nodes(static_cast<size_t>(group_.size()));   // of our slice, from each member
  ByRank out(nodes.size());
  at::Tensor mean;
  queue_->Now([&] {
    mean = at::empty({count}, into.options());
    for (size_t rank = 0; rank < out.size(); ++rank) {
      std::vector<at::Tensor> slices{at::empty({0}, into.options())};
      for (const TreeSum::Entry& entry : own) {
        slices.push_back(SliceOf(entry.value, static_cast<int>(rank)));
      }
      out[rank] = slices.size() == 2 ? slices.back() : at::cat(slices);
      const auto shipped = static_cast<int64_t>(shares_.nodes[rank].size());
      if (rank != us) nodes[rank] = at::empty({shipped * count}, into.options());
    }
  });
  for (const ByRank* const made : {&out, &nodes}) {
    for (const at::Tensor& tensor : *made) {
      if (tensor.defined()) queue_->Keep(tensor);
    }
  }
  queue_->Keep(mean);
  nodes[us] = std::exchange(out[us], at::Tensor());
  ByRank in = nodes;
  in[us] = at::Tensor();
  KEEL_TRY(Exchange(out, in));
  queue_->Then([nodes, mean, count, &shares = shares_] {
    TreeSum sum;
    for (size_t rank = 0; rank < nodes.size(); ++rank) {
      int64_t offset = 0;
      for (const LaneNode& node : shares.nodes[rank]) {
        sum.Push(node, nodes[rank].narrow(0, offset, count));
        offset += count;
      }
    }
    at::Tensor result = mean;
    sum.FinishMean(shares.lanes, result);
  });
  return mean;
}

Status GpuReducer::ShareSums(const at::Tensor& into, const at::Tensor& sum) {
  ByRank out(static_cast<size_t>(group_.size()), sum);
  ByRank in;
  for (int rank = 0; rank < group_.size(); ++rank) in.push_back(SliceOf(into, rank));
  const auto us = static_cast<size_t>(group_.rank());
  at::Tensor own = std::exchange(in[us], at::Tensor());
  out[us] = at::Tensor();
  KEEL_TRY(Exchange(out, in));
  queue_->Then([own, sum] { at::Tensor(own).copy_(sum); });
  return Ok();
}

Status GpuReducer::AllReduce(const at::Tensor& into) {
  Follow(into);
  KEEL_TRY(group_.SumOnGpu(into, queue_->stream()));
  queue_->Then([into, scale = 1.0 / shares_.lanes] { at::Tensor(into).mul_(scale); });
  return Ok();
}

// Polls, since Abort() could not end a wait for an event.
Status GpuReducer::Await() {
  const Whereabouts::Waiting waiting(group_.whereabouts(), Activity::kAnybody);
  const std::function<bool()> is_done = queue_->Mark();
  const Duration limit = group_.limit();
  const TimePoint deadline = RealClock().Monotonic() + limit;
  while (!is_done()) {
    KEEL_TRY(group_.LookAtGpu());
    if (RealClock().Monotonic() >= deadline) {
      group_.Abort(Error{Code::kTimeout, "waited " + DurationText(limit) +
                                             " for the others' part of an exchange on the GPU"});
    }
    RealClock().SleepFor(kLook);
  }
  return group_.LookAtGpu();
}

}  // namespace keel
