// Buffers of all kinds as one flat tensor of a lane's results, and back.
#include "trainer/state/lane_buffers.h"

#include "base/check.h"
#include "trainer/tensors.h"

namespace keel {
namespace {

bool IsBool(const at::Tensor& buffer) { return buffer.scalar_type() == at::kBool; }

at::Tensor Bytes(const at::Tensor& tensor) { return FlatAlias(tensor.detach()).view(at::kByte); }

void CopyAll(const std::vector<at::Tensor>& from, std::vector<at::Tensor>& to) {
  if (to.size() < from.size()) {
    for (const at::Tensor& tensor : from) to.push_back(tensor.detach().clone());
    return;
  }
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

// By bits, for a NaN equals no NaN, and the two zeros are equal.
bool Differ(const at::Tensor& a, const at::Tensor& b) { return !at::equal(Bytes(a), Bytes(b)); }

// What a lane has added to whole numbers, in a type that has room for both directions. The sum over
// lanes is to lose nothing that would change the mean's whole number, of up to some hundred lanes.
at::Tensor Added(const at::Tensor& after, const at::Tensor& before, at::ScalarType type) {
  const at::Tensor added = after.to(at::kLong) - before.to(at::kLong);
  const int64_t most = type == at::kDouble ? int64_t{1} << 48 : int64_t{1} << 19;
  TORCH_CHECK(added.abs().max().item<int64_t>() <= most, "a lane added more than ", most,
              " to an integer buffer of shape ", after.sizes(),
              ", which the mean over lanes cannot hold: keep it as one of torch.float64");
  return added;
}

}  // namespace

LaneBuffers::LaneBuffers(std::vector<at::Tensor> buffers) {
  for (at::Tensor& buffer : buffers) {
    if (IsBool(buffer)) {
      flags_.push_back(std::move(buffer));
      continue;
    }
    elements_ += buffer.numel();
    if (buffer.scalar_type() == at::kDouble) type_ = at::kDouble;
    buffers_.push_back(std::move(buffer));
  }
  elements_ += static_cast<int64_t>(buffers_.size());
  BeginStep();
}

void LaneBuffers::BeginStep() {
  const at::NoGradGuard no_grad;
  CopyAll(buffers_, before_);
  CopyAll(flags_, flags_before_);
}

void LaneBuffers::Restore() {
  const at::NoGradGuard no_grad;
  CopyAll(before_, buffers_);
  CopyAll(flags_before_, flags_);
}

at::Tensor LaneBuffers::LaneResult() const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < flags_.size(); ++i) {
    TORCH_CHECK(!Differ(flags_[i], flags_before_[i]), "a lane changed a boolean buffer of shape ",
                flags_[i].sizes(), "; it has no mean over lanes: keep it as one of torch.uint8");
  }
  if (empty()) return at::empty({0}, type_);
  std::vector<at::Tensor> parts;
  std::vector<double> changed;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const at::Tensor& buffer = buffers_[i];
    const bool differs = Differ(buffer, before_[i]);
    TORCH_CHECK(!differs || !buffer.is_complex(), "a lane changed a complex buffer of shape ",
                buffer.sizes(), "; only real ones can be averaged: keep it as two real ones");
    const at::Tensor result = buffer.is_floating_point() ? buffer
                              : differs                  ? Added(buffer, before_[i], type_)
                                                         : at::zeros_like(buffer, type_);
    parts.push_back(result.detach().reshape({-1}).to(type_));
    changed.push_back(differs ? 1 : 0);
  }
  parts.push_back(at::tensor(changed, parts[0].options()));
  return at::cat(parts);
}

void LaneBuffers::EndStep(const at::Tensor& mean) {
  KEEL_CHECK(mean.numel() == elements_, mean.numel() << " elements, not " << elements_);
  if (empty()) return;
  const at::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(buffers_.size());
  // The flags may be on a device; they are asked for at once.
  const at::Tensor changed = mean.narrow(0, elements_ - count, count).to(at::kCPU, at::kDouble);
  int64_t offset = 0;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    at::Tensor& buffer = buffers_[i];
    const at::Tensor part = mean.narrow(0, offset, buffer.numel()).reshape(buffer.sizes());
    offset += buffer.numel();
    if (changed.data_ptr<double>()[i] == 0) {
      buffer.copy_(before_[i]);
    } else if (buffer.is_floating_point()) {
      buffer.copy_(part);
    } else {
      // Where every lane adds the same whole number, the mean is that number, except for the
      // rounding of 1/V.
      buffer.copy_(before_[i].to(at::kLong) + part.round().to(at::kLong));
    }
  }
}

}  // namespace keel
