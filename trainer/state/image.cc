// Aliases memory that lies as a checkpoint wants it, and copies the rest.
#include "trainer/state/image.h"

#include <optional>

#include "base/text.h"
#include "store/catch_torch.h"

namespace keel {
namespace {

std::optional<Dtype> DtypeOf(at::ScalarType type) {
  switch (type) {
    case at::kBool: return Dtype::kBool;
    case at::kByte: return Dtype::kU8;
    case at::kChar: return Dtype::kI8;
    case at::kUInt16: return Dtype::kU16;
    case at::kShort: return Dtype::kI16;
    case at::kUInt32: return Dtype::kU32;
    case at::kInt: return Dtype::kI32;
    case at::kUInt64: return Dtype::kU64;
    case at::kLong: return Dtype::kI64;
    case at::kFloat8_e4m3fn: return Dtype::kF8E4M3;
    case at::kFloat8_e5m2: return Dtype::kF8E5M2;
    case at::kHalf: return Dtype::kF16;
    case at::kBFloat16: return Dtype::kBf16;
    case at::kFloat: return Dtype::kF32;
    case at::kDouble: return Dtype::kF64;
    case at::kComplexFloat: return Dtype::kC64;
    case at::kComplexDouble: return Dtype::kC128;
    default: return std::nullopt;
  }
}

bool LiesAsSaved(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous();
}

}  // namespace

NamedTensors AsSaved(const ModelTensors& tensors) {
  NamedTensors all;
  for (const NamedTensors* part : {&tensors.parameters, &tensors.buffers, &tensors.frozen}) {
    for (const NamedTensor& named : *part) {
      all.push_back({std::string(kModelPrefix) + named.name, named.tensor});
    }
  }
  return all;
}

Result<std::vector<TensorSpec>> SpecsOf(const NamedTensors& tensors) {
  std::vector<TensorSpec> specs;
  std::vector<std::string> wrong;
  for (const NamedTensor& named : tensors) {
    const std::optional<Dtype> dtype = DtypeOf(named.tensor.scalar_type());
    if (!dtype) {
      wrong.push_back(named.name + " is of type " + c10::toString(named.tensor.scalar_type()));
      continue;
    }
    specs.push_back({named.name, *dtype, named.tensor.sizes().vec()});
  }
  if (wrong.empty()) return specs;
  return Error{Code::kInvalid, "a checkpoint cannot hold these tensors: " + JoinList(wrong, "; ")};
}

Result<CpuBytes> CpuBytes::Of(const NamedTensors& tensors,
                                const std::function<Take(size_t index)>& how) {
  return CatchTorch("copying the state", [&] {
    CpuBytes bytes;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Take take = how(i);
      if (take == Take::kNothing) {
        bytes.spans_.emplace_back();
        continue;
      }
      at::Tensor held = tensors[i].tensor.detach();
      if (!LiesAsSaved(held)) {
        held = held.to(at::kCPU).contiguous();
      } else if (take == Take::kCopy) {
        held = held.clone();
      }
      const auto* const begin = static_cast<const std::byte*>(held.const_data_ptr());
      bytes.spans_.emplace_back(begin, held.nbytes());
      bytes.kept_.push_back(std::move(held));
    }
    return bytes;
  });
}

Result<HostRoom> HostRoom::For(const NamedTensors& tensors) {
  return CatchTorch("making room for the state", [&] {
    HostRoom room;
    for (const NamedTensor& named : tensors) {
      const at::Tensor target = named.tensor.detach();
      room.targets_.push_back(target);
      room.rooms_.push_back(LiesAsSaved(target)
                                ? target
                                : at::empty(target.sizes(), target.options().device(at::kCPU)));
    }
    return room;
  });
}

std::span<std::byte> HostRoom::At(size_t index) const {
  const at::Tensor& room = rooms_[index];
  return {static_cast<std::byte*>(room.data_ptr()), room.nbytes()};
}

Status HostRoom::Finish() const {
  return CatchTorch("putting the state in its place", [&] {
    for (size_t i = 0; i < rooms_.size(); ++i) {
      if (!rooms_[i].is_same(targets_[i])) targets_[i].copy_(rooms_[i]);
    }
  });
}

}  // namespace keel
