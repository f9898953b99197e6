// Cuts greedily; sources and first receivers take turns by the piece's number.
#include "trainer/exchange/transfer_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace keel {

std::vector<TransferPiece> CutPieces(const std::vector<uint64_t>& sizes,
                                     uint64_t piece_bytes_max) {
  KEEL_CHECK(piece_bytes_max > 0, "pieces of no bytes");
  std::vector<TransferPiece> pieces;
  TransferPiece piece;
  for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
    for (uint64_t offset = 0; offset < sizes[tensor];) {
      const uint64_t bytes = std::min(sizes[tensor] - offset, piece_bytes_max - piece.bytes);
      piece.spans.push_back({tensor, offset, bytes});
      piece.bytes += bytes;
      offset += bytes;
      if (piece.bytes == piece_bytes_max) pieces.push_back(std::exchange(piece, {}));
    }
  }
  if (piece.bytes > 0) pieces.push_back(std::move(piece));
  return pieces;
}

TransferRoute RouteOf(size_t index, const std::vector<int>& sources,
                      const std::vector<int>& needy) {
  KEEL_CHECK(!sources.empty() && !needy.empty(),
             sources.size() << " sources, " << needy.size() << " in need");
  return {sources[index % sources.size()], needy[index / sources.size() % needy.size()]};
}

}  // namespace keel
