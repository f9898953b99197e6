// Gathers ranges of tensors from their frames.
#include "ckpt/tensor_reader.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace keel {

// A frame of small tensors is decoded once for all of them.
Status TensorReader::Hold(uint64_t frame, const std::string& tensor) {
  if (held_ == frame) return Ok();
  held_.reset();
  const auto content = frames_.Read(frame);
  if (!content.ok()) {
    const auto place = checkpoint_.Locate(frame);
    return content.error().Doing(place.shard->Place(place.index) + ", tensor " + Shown(tensor));
  }
  held_ = frame;
  content_ = *content;
  return Ok();
}

Status TensorReader::Read(size_t tensor, uint64_t offset, std::span<std::byte> into) {
  const Layout& layout = checkpoint_.layout();
  const PlacedTensor& placed = layout.tensors().at(tensor);
  if (offset > placed.bytes || into.size() > placed.bytes - offset) {
    return Error{Code::kInvalid, "tensor " + Shown(placed.spec.name) + " has " +
                                     std::to_string(placed.bytes) + " bytes; " +
                                     std::to_string(into.size()) + " from " +
                                     std::to_string(offset) + " on were asked for"};
  }
  while (!into.empty()) {
    const uint64_t at = placed.offset + offset;
    const uint64_t frame = at / layout.frame_bytes();
    KEEL_TRY(Hold(frame, placed.spec.name));
    const size_t skip = at - frame * layout.frame_bytes();
    const size_t count = std::min(into.size(), content_.size() - skip);
    std::memcpy(into.data(), content_.data() + skip, count);
    into = into.subspan(count);
    offset += count;
  }
  return Ok();
}

}  // namespace keel
