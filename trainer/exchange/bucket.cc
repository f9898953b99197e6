// Views of flat tensors. Gradients are copied into them; for the second lane of a pair, autograd
// itself adds there.
#include "trainer/exchange/bucket.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/large_pages.h"

namespace keel {
namespace {

// This memory is written, read by other workers and read again in each step. In pages of 4 KiB,
// finding them takes the kernel and the processor a good part of that time.
at::Tensor InLargePages(at::Tensor fresh) {
  if (fresh.is_cpu()) {
    PreferLargePages({static_cast<std::byte*>(fresh.mutable_data_ptr()), fresh.nbytes()});
  }
  return fresh;
}

}  // namespace

// The last lane is exchanged from the bucket, so its partner's gradients must be there before it.
LanePlace PlaceOf(int lane, const LaneRange& lanes, bool plain) {
  if (plain) return {.adds = lane > lanes.begin, .in_bucket = true};
  const auto pairs = [&](int first) {
    return first >= lanes.begin && first + 1 < lanes.end && MakesNode({first, 1}, {first + 1, 1});
  };
  if (pairs(lane - 1)) return {true, lane + 1 == lanes.end, {lane - 1, 2}};
  if (pairs(lane)) return {false, lane + 2 == lanes.end, {lane, 0}};
  return {false, lane + 1 == lanes.end, {lane, 1}};
}

ExchangeBucket::ExchangeBucket(std::vector<at::Tensor> parameters, at::Tensor buffer)
    : parameters_(std::move(parameters)), bucket_(ViewsOf(InLargePages(std::move(buffer)))),
      reached_(parameters_.size()) {}

ExchangeBucket::Flat ExchangeBucket::ViewsOf(at::Tensor tensor) const {
  Flat flat{std::move(tensor), {}};
  int64_t offset = 0;
  for (const at::Tensor& parameter : parameters_) {
    const int64_t count = parameter.numel();
    flat.views.push_back(
        parameter.is_non_overlapping_and_dense()
            ? flat.tensor.as_strided(parameter.sizes(), parameter.strides(),
                                     flat.tensor.storage_offset() + offset)
            : flat.tensor.narrow(0, offset, count).view(parameter.sizes()));
    offset += count;
  }
  KEEL_CHECK(offset == flat.tensor.numel(), offset << " of " << flat.tensor.numel());
  return flat;
}

// A sum is made where its first lanes lie, so the places behind the entries are free again.
const ExchangeBucket::Flat& ExchangeBucket::FreeFlat() {
  const size_t entries = sum_.entries().size();
  if (entries == flats_.size()) {
    flats_.push_back(ViewsOf(InLargePages(at::empty_like(bucket_.tensor))));
  }
  return flats_[entries];
}

void ExchangeBucket::BeginStep() { sum_.Clear(); }

void ExchangeBucket::BeginLane(const LanePlace& lane) {
  lane_ = lane;
  if (!lane_.adds) place_ = lane_.in_bucket ? &bucket_ : &FreeFlat();
  std::fill(reached_.begin(), reached_.end(), false);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].mutable_grad() = lane_.adds ? place_->views[i] : at::Tensor();
  }
}

void ExchangeBucket::TakeGradient(size_t i, const at::Tensor& made) {
  if (reached_[i]) throw std::runtime_error("a parameter got two gradients in one backward");
  reached_[i] = true;
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = parameters_[i].mutable_grad();
  const at::Tensor& place = place_->views[i];
  if (!made.defined()) {
    CountAsZero(i);
  } else if (!gradient.is_same(place)) {
    place.copy_(gradient);   // if a lane adds here, autograd has made a new tensor of the sum
  }
  gradient = place;
}

// Zero is added all the same: -0 + 0 is +0.
void ExchangeBucket::CountAsZero(size_t i) {
  if (lane_.adds) {
    place_->views[i].add_(0);
  } else {
    place_->views[i].zero_();
  }
}

void ExchangeBucket::EndLane() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!reached_[i]) CountAsZero(i);
    parameters_[i].mutable_grad() = at::Tensor();
  }
  if (lane_.whole.size > 0) sum_.Push(lane_.whole, place_->tensor);
}

void ExchangeBucket::EndLastLane() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (reached_[i]) continue;
    CountAsZero(i);
    parameters_[i].mutable_grad() = place_->views[i];
  }
  if (lane_.whole.size > 0) sum_.Push(lane_.whole, bucket_.tensor);
}

void ExchangeBucket::TakeBufferAsGradients() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].mutable_grad() = bucket_.views[i];
  }
}

}  // namespace keel
