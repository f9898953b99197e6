// The tensors' bytes, one after the other, are cut at equal distances, and there at whole elements.
#include "trainer/state/state_pieces.h"

#include <algorithm>

#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

constexpr uint64_t kPiecesMax = 32;

}  // namespace

uint64_t PiecesFor(uint64_t state_bytes, uint64_t piece_bytes) {
  return std::clamp((state_bytes + piece_bytes - 1) / piece_bytes, uint64_t{1}, kPiecesMax);
}

Digest DigestOfPiece(const std::vector<at::Tensor>& flat, uint64_t piece, uint64_t pieces) {
  uint64_t bytes = 0;
  for (const at::Tensor& tensor : flat) bytes += tensor.nbytes();
  const uint64_t length = (bytes + pieces - 1) / pieces;
  const uint64_t begin = piece * length;
  std::vector<at::Tensor> parts;
  uint64_t at = 0;
  for (const at::Tensor& tensor : flat) {
    const auto element = static_cast<uint64_t>(tensor.element_size());
    // The first element that begins there or behind it.
    const auto index = [&](uint64_t position) {
      const uint64_t offset = position > at ? position - at : 0;
      return std::min((offset + element - 1) / element, static_cast<uint64_t>(tensor.numel()));
    };
    const uint64_t first = index(begin);
    const uint64_t end = index(begin + length);
    if (end > first) {
      parts.push_back(tensor.narrow(0, static_cast<int64_t>(first),
                                    static_cast<int64_t>(end - first)));
    }
    at += tensor.nbytes();
  }
  return DigestOfTensors(parts);
}

}  // namespace keel
