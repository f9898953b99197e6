// The copy keeps the stream's order, so each whole frame lies in one piece.
#include "ckpt/snapshot.h"

#include <algorithm>

#include "ckpt/copy_aside.h"

namespace keel {
namespace {

constexpr size_t kPage = 4096;

// The bytes of the stream from the first of these frames to the end of the last.
size_t StreamBytes(const Layout& layout, FrameRange frames) {
  if (frames.count == 0) return 0;
  const FrameSpan last = layout.Frame(frames.end() - 1);
  return last.offset + last.bytes - frames.first * layout.frame_bytes();
}

}  // namespace

void CopiedSnapshot::Hold(size_t bytes) {
  if (buffer_.bytes().size() < bytes) {
    buffer_ = SlotBuffer();  // frees it first, so that the two do not exist at once
    buffer_ = SlotBuffer(bytes);
  }
  held_ = buffer_.bytes().first(bytes);
}

void CopiedSnapshot::Reserve(const Layout& layout, uint32_t part, uint32_t parts,
                             const std::atomic<bool>& stop) {
  Hold(StreamBytes(layout, layout.PartOf(part, parts)));
  // The system provides a page when it is first written.
  for (size_t at = 0; at < held_.size() && !stop; at += kPage) held_[at] = std::byte{0};
}

void CopiedSnapshot::Copy(const Layout& layout, uint32_t part, uint32_t parts,
                          const std::vector<std::span<const std::byte>>& tensors) {
  const FrameRange frames = layout.PartOf(part, parts);
  layout_ = layout;
  stream_offset_ = frames.first * layout.frame_bytes();
  Hold(StreamBytes(layout, frames));
  const uint64_t end = stream_offset_ + held_.size();
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const PlacedTensor& placed = layout.tensors()[i];
    const uint64_t from = std::max(placed.offset, stream_offset_);
    const uint64_t to = std::min(placed.offset + placed.bytes, end);
    if (from >= to) continue;
    const auto part_of_it = tensors.at(i).subspan(from - placed.offset, to - from);
    CopyAside(held_.data() + (from - stream_offset_), part_of_it.data(), part_of_it.size());
  }
}

const std::byte* CopiedSnapshot::Borrow(size_t tensor, uint64_t offset, size_t bytes) {
  const uint64_t at = layout_.tensors().at(tensor).offset + offset;
  KEEL_CHECK(at >= stream_offset_ && at - stream_offset_ + bytes <= held_.size(),
             "bytes " << at << " + " << bytes << " of the stream are not in this copy");
  return held_.data() + (at - stream_offset_);
}

Status CopiedSnapshot::Read(size_t, uint64_t, std::span<std::byte>) {
  return Error{Code::kForeign, "a copy is borrowed, never read"};
}

}  // namespace keel
