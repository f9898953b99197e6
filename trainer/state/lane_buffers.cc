// Buffers of all kinds as one flat tensor of a lane's results, and back.
#include "trainer/state/lane_buffers.h"

#include "base/check.h"

namespace keel {
namespace {

bool IsBool(const at::Tensor& buffer) { return buffer.scalar_type() == at::kBool; }

}  // namespace

LaneBuffers::LaneBuffers(std::vector<at::Tensor> buffers) {
  for (at::Tensor& buffer : buffers) {
    if (IsBool(buffer)) continue;
    elements_ += buffer.numel();
    if (buffer.scalar_type() == at::kDouble) type_ = at::kDouble;
    buffers_.push_back(std::move(buffer));
  }
  BeginStep();
}

void LaneBuffers::BeginStep() {
  const at::NoGradGuard no_grad;
  if (before_.empty()) {
    for (const at::Tensor& buffer : buffers_) before_.push_back(buffer.detach().clone());
    return;
  }
  for (size_t i = 0; i < buffers_.size(); ++i) before_[i].copy_(buffers_[i]);
}

void LaneBuffers::Restore() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(before_[i]);
}

at::Tensor LaneBuffers::LaneResult() const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const at::Tensor& buffer = buffers_[i];
    const at::Tensor result = buffer.is_floating_point() ? buffer : buffer - before_[i];
    parts.push_back(result.detach().reshape({-1}).to(type_));
  }
  return parts.empty() ? at::empty({0}, type_) : at::cat(parts);
}

void LaneBuffers::EndStep(const at::Tensor& mean) {
  KEEL_CHECK(mean.numel() == elements_, mean.numel() << " elements, not " << elements_);
  const at::NoGradGuard no_grad;
  int64_t offset = 0;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    at::Tensor& buffer = buffers_[i];
    const at::Tensor part = mean.narrow(0, offset, buffer.numel()).reshape(buffer.sizes());
    offset += buffer.numel();
    if (buffer.is_floating_point()) {
      buffer.copy_(part);
    } else {
      // Every lane adds the same whole number; the mean is that number, except for the rounding of
      // 1/V.
      buffer.copy_(before_[i] + part.round().to(buffer.scalar_type()));
    }
  }
}

}  // namespace keel
