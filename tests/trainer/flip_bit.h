// FlipBitOf(): one bit of a tensor changes, as on a bad machine.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace keel {

// `where` draws the bit; the tensor is dense and on the CPU.
inline void FlipBitOf(const at::Tensor& tensor, uint64_t where) {
  if (tensor.numel() == 0) return;
  const uint64_t byte = where % static_cast<uint64_t>(tensor.nbytes());
  static_cast<unsigned char*>(tensor.mutable_data_ptr())[byte] ^=
      static_cast<unsigned char>(1u << (where / 8 % 8));
}

}  // namespace keel
