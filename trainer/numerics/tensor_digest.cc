// Feeds each tensor's type, shape and bytes to one Digester.
#include "trainer/numerics/tensor_digest.h"

#include <span>

namespace keel {
namespace {

template <class T>
std::span<const std::byte> BytesOf(const T* data, size_t count) {
  return std::as_bytes(std::span<const T>(data, count));
}

}  // namespace

Digest DigestOfTensors(const std::vector<at::Tensor>& tensors) {
  Digester digester;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
    const int64_t head[] = {static_cast<int64_t>(plain.scalar_type()), plain.dim()};
    digester.Update(BytesOf(head, 2));
    digester.Update(BytesOf(plain.sizes().data(), plain.sizes().size()));
    digester.Update(BytesOf(static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()));
  }
  return digester.Current();
}

}  // namespace keel
