// The copy keeps the stream's order, so that whole frames lie in one piece.
#include "ckpt/snapshot.h"

#include <algorithm>
#include <cstring>

namespace keel {

void CopiedSnapshot::Copy(const Layout& layout, uint32_t part, uint32_t parts,
                          const std::vector<std::span<const std::byte>>& tensors) {
  const FrameRange frames = layout.PartOf(part, parts);
  layout_ = layout;
  stream_offset_ = frames.first * layout.frame_bytes();
  if (frames.count == 0) {
    bytes_.clear();
    return;
  }
  const FrameSpan last = layout.Frame(frames.end() - 1);
  const uint64_t end = last.offset + last.bytes;
  bytes_.resize(end - stream_offset_);
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const PlacedTensor& placed = layout.tensors()[i];
    const uint64_t from = std::max(placed.offset, stream_offset_);
    const uint64_t to = std::min(placed.offset + placed.bytes, end);
    if (from >= to) continue;
    const auto part_of_it = tensors.at(i).subspan(from - placed.offset, to - from);
    std::memcpy(bytes_.data() + (from - stream_offset_), part_of_it.data(), part_of_it.size());
  }
}

const std::byte* CopiedSnapshot::Borrow(size_t tensor, uint64_t offset, size_t bytes) {
  const uint64_t at = layout_.tensors().at(tensor).offset + offset;
  KEEL_CHECK(at >= stream_offset_ && at - stream_offset_ + bytes <= bytes_.size(),
             "bytes " << at << " + " << bytes << " of the stream are not in this copy");
  return bytes_.data() + (at - stream_offset_);
}

Status CopiedSnapshot::Read(size_t, uint64_t, std::span<std::byte>) {
  return Error{Code::kForeign, "a copy is borrowed, never read"};
}

}  // namespace keel
