// TransferPlan: how a list of tensors is cut into pieces, and which member moves which piece.
// Promises   the pieces cover every byte once, in order; the sources send equally many pieces
//            each. With several members in need, each piece goes from its source to one of them,
//            which sends it on to the others; those turns are shared as well.
// Threads    plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace keel {

// A part of one tensor's bytes.
struct TransferSpan {
  size_t tensor = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const TransferSpan&) const = default;
};

struct TransferPiece {
  std::vector<TransferSpan> spans;  // small tensors share a piece
  uint64_t bytes = 0;
};

// `sizes`: bytes of each tensor; a piece has at most `piece_bytes_max`.
std::vector<TransferPiece> CutPieces(const std::vector<uint64_t>& sizes, uint64_t piece_bytes_max);

// The route of piece `index`: `source` sends it to `first`, which sends it to the rest of `needy`.
struct TransferRoute {
  int source = 0;
  int first = 0;
};
TransferRoute RouteOf(size_t index, const std::vector<int>& sources,
                      const std::vector<int>& needy);

}  // namespace keel
