// Tells what damaged frames mean for tensors.
#include "ckpt/verify.h"

#include <algorithm>

#include "base/text.h"
#include "ckpt/error_list.h"

namespace keel {

std::vector<TensorHit> HitBy(const Layout& layout, uint64_t frame) {
  std::vector<TensorHit> hits;
  for (const Piece& piece : layout.PiecesOf(frame)) {
    const uint64_t element = DtypeBytes(layout.tensors()[piece.tensor].spec.dtype);
    hits.push_back({piece.tensor, piece.tensor_offset / element,
                    (piece.tensor_offset + piece.bytes - 1) / element});
  }
  return hits;
}

std::vector<TensorHit> HitBy(const Layout& layout, FrameRange frames) {
  if (frames.count == 1) return HitBy(layout, frames.first);
  std::vector<TensorHit> hits;
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const PlacedTensor& tensor = layout.tensors()[i];
    const uint64_t from = std::max(tensor.offset, frames.first * layout.frame_bytes());
    const uint64_t to =
        std::min(tensor.offset + tensor.bytes, frames.end() * layout.frame_bytes());
    if (from >= to) continue;
    const uint64_t element = DtypeBytes(tensor.spec.dtype);
    hits.push_back({i, (from - tensor.offset) / element, (to - 1 - tensor.offset) / element});
  }
  return hits;
}

Error DamageError(const Layout& layout, const Damage& damage) {
  std::string hits;
  for (const TensorHit& hit : HitBy(layout, damage.frame)) {
    hits += (hits.empty() ? " (" : ", ") + Shown(layout.tensors()[hit.tensor].spec.name) +
            " elements " + std::to_string(hit.first) + " to " + std::to_string(hit.last);
  }
  return damage.error.Doing(damage.place + (hits.empty() ? "" : hits + ")"));
}

Status DamageStatus(const Checkpoint& checkpoint, const std::vector<Damage>& damages) {
  ErrorList errors;
  for (const Damage& damage : damages) errors.Add(DamageError(checkpoint.layout(), damage));
  return errors.ToStatus("checkpoint " + checkpoint.dir());
}

Result<std::vector<Damage>> VerifyFrames(const Checkpoint& checkpoint, const ScanOptions& options) {
  const FrameRange all{0, checkpoint.layout().frame_count()};
  if (options.progress != nullptr) {
    options.progress->bytes_done = 0;
    options.progress->bytes_total = checkpoint.layout().BytesIn(all);
  }
  return ScanFrames(checkpoint, {all}, options, nullptr);
}

}  // namespace keel
