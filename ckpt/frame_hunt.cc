// Searches for the magic number, and looks at what follows it.
#include "ckpt/frame_hunt.h"

#include <algorithm>
#include <string_view>

#include "ckpt/away.h"
#include "ckpt/frame.h"
#include "ckpt/slot_buffer.h"

namespace keel {
namespace {

constexpr size_t kWindowBytes = 1024 * 1024;
// More than this are no accident.
constexpr size_t kSpotsMax = 4;

void NoteFrame(const Layout& layout, FrameRange frames, uint64_t at,
               std::span<const std::byte> bytes, FrameSpots* spots) {
  const auto header = ParseFrameHeader(bytes);
  if (!header.ok() || header->number < frames.first || header->number >= frames.end()) return;
  const FrameSpan expected = layout.Frame(header->number);
  if (header->content_bytes != expected.bytes || header->width != expected.width) return;
  if (header->payload_bytes > StoredBytesMax(expected.bytes)) return;
  std::vector<FrameSpot>& found = (*spots)[header->number];
  if (found.size() == kSpotsMax) return;
  found.push_back({at, static_cast<uint32_t>(kFrameHeaderBytes + header->payload_bytes)});
}

// Where the frame after this one begins.
uint64_t EndOf(const FrameSpot& spot, uint64_t frame, FrameRange frames) {
  const uint64_t end = spot.offset + spot.bytes;
  const bool ends_slot = (frame - frames.first) % kSlotFrames == kSlotFrames - 1;
  return ends_slot ? RoundUpToSlot(end) : end;
}

bool AnySpot(const FrameSpots& spots, uint64_t frame, const auto& is_wanted) {
  const auto found = spots.find(frame);
  return found != spots.end() &&
         std::any_of(found->second.begin(), found->second.end(), is_wanted);
}

bool IsInPlace(const FrameSpots& spots, uint64_t frame, const FrameSpot& spot, FrameRange frames) {
  if (frame == frames.first) return spot.offset == kShardHeaderBytes;
  return AnySpot(spots, frame - 1,
                 [&](const FrameSpot& before) {
                   return EndOf(before, frame - 1, frames) == spot.offset;
                 }) ||
         AnySpot(spots, frame + 1, [&](const FrameSpot& after) {
           return EndOf(spot, frame, frames) == after.offset;
         });
}

}  // namespace

FrameSpots InTheirPlace(const FrameSpots& spots, FrameRange frames) {
  FrameSpots kept;
  for (const auto& [frame, all] : spots) {
    for (const FrameSpot& spot : all) {
      if (IsInPlace(spots, frame, spot, frames)) kept[frame].push_back(spot);
    }
  }
  return kept;
}

Result<FrameSpots> HuntFrames(File& file, bool in_bucket, const Layout& layout,
                              FrameRange frames) {
  FrameSpots spots;
  const Result<uint64_t> size = file.Size();
  if (!size.ok() || frames.count == 0) return spots;
  const std::string_view magic(reinterpret_cast<const char*>(&kFrameMagic), sizeof kFrameMagic);
  std::vector<std::byte> window(kWindowBytes);
  // Windows overlap so that every header lies whole in one of them, but begins in only one.
  constexpr size_t kStep = kWindowBytes - (kFrameHeaderBytes - 1);
  for (uint64_t at = 0; at < *size; at += kStep) {
    const Result<size_t> got = file.ReadAt(at, window);
    if (!got.ok()) {
      if (IsAway(in_bucket, got.error().code)) return got.error();
      continue;
    }
    const std::string_view text(reinterpret_cast<const char*>(window.data()), *got);
    for (size_t found = text.find(magic); found != std::string_view::npos && found < kStep;
         found = text.find(magic, found + 1)) {
      NoteFrame(layout, frames, at + found, std::span<const std::byte>(window).first(*got)
                                                .subspan(found), &spots);
    }
  }
  return spots;
}

}  // namespace keel
