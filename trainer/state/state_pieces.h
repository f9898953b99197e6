// StatePieces: digests of parts of a state, by which members whose states must be the same compare
// them over several steps rather than all at once.
// Promises   the pieces of one count cover every byte once, whatever the tensors' sizes, and are
//            the same on all workers whose states have one layout.
// Does not   read what lanes change (buffers): give it the other tensors.
// Threads    pure functions of what the tensors hold.
// Errors     throws as ATen does: call it inside CatchTorch().
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "base/digest.h"

namespace keel {

// So many pieces that a step digests `piece_bytes` or more, and no state takes more than some
// thirty steps. 1: the state is small enough to be compared at once.
uint64_t PiecesFor(uint64_t state_bytes, uint64_t piece_bytes);

// `flat` holds one-dimensional tensors.
Digest DigestOfPiece(const std::vector<at::Tensor>& flat, uint64_t piece, uint64_t pieces);

}  // namespace keel
