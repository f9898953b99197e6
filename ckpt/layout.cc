// Places tensors and cuts frames.
#include "ckpt/layout.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kNameBytesMax = 4096;
constexpr size_t kDimensionsMax = 64;
constexpr uint32_t kWidths[] = {8, 4, 2, 1};

uint64_t RoundUp(uint64_t number, uint64_t unit) { return (number + unit - 1) / unit * unit; }

// The length in bytes of the UTF-8 character at `text`; 0 if it is malformed.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  const unsigned second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return length;
}

Status CheckName(const std::string& name) {
  const auto refused = [&](const char* why) {
    return Error{Code::kInvalid, "tensor " + Shown(name) + ": its name " + why};
  };
  if (name.empty()) return refused("is empty");
  if (name.size() > kNameBytesMax) return refused("has more than 4096 bytes");
  for (std::string_view left = name; !left.empty();) {
    if (static_cast<unsigned char>(left[0]) < 0x20) return refused("holds a control character");
    const size_t length = Utf8Length(left);
    if (length == 0) return refused("is not UTF-8");
    left.remove_prefix(length);
  }
  return Ok();
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::string TypeText(const TensorSpec& spec) {
  return std::string(DtypeName(spec.dtype)) + " " + ShapeText(spec.shape);
}

Result<uint64_t> ContentBytes(const TensorSpec& spec) {
  const auto refused = [&](const std::string& why) {
    return Error{Code::kInvalid, "tensor " + Shown(spec.name) + ": " + why};
  };
  if (spec.shape.size() > kDimensionsMax) {
    return refused(std::to_string(spec.shape.size()) + " dimensions; 64 are possible");
  }
  // A size of 0 makes 0 elements, however large the other dimensions are, so it is left out first.
  uint64_t bytes = DtypeBytes(spec.dtype);
  bool is_empty = false;
  for (const int64_t size : spec.shape) {
    if (size < 0) return refused("dimension " + std::to_string(size) + " is negative");
    is_empty = is_empty || size == 0;
  }
  if (is_empty) return uint64_t{0};
  for (const int64_t size : spec.shape) {
    if (static_cast<uint64_t>(size) > kStreamBytesMax / bytes) {
      return refused("shape " + ShapeText(spec.shape) + " is larger than a checkpoint can be");
    }
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

Result<Layout> Layout::Make(std::vector<TensorSpec> tensors, uint32_t frame_bytes) {
  if (frame_bytes < kFrameBytesMin || frame_bytes > kFrameBytesMax ||
      frame_bytes % kTensorAlignment != 0) {
    return Error{Code::kInvalid, "frames of " + std::to_string(frame_bytes) +
                                     " bytes: a multiple of 64 up to 16 MiB is expected"};
  }
  Layout layout;
  layout.frame_bytes_ = frame_bytes;
  layout.tensors_.reserve(tensors.size());
  for (TensorSpec& spec : tensors) {
    KEEL_TRY(CheckName(spec.name));
    KEEL_TRY_ASSIGN(const uint64_t bytes, ContentBytes(spec));
    if (!layout.by_name_.emplace(spec.name, layout.tensors_.size()).second) {
      return Error{Code::kInvalid, "tensor " + Shown(spec.name) + " is there twice"};
    }
    layout.tensor_bytes_ += bytes;
    if (layout.tensor_bytes_ > kStreamBytesMax) {
      return Error{Code::kInvalid, "tensor " + Shown(spec.name) +
                                       ": with it the checkpoint has more than 2^56 bytes"};
    }
    layout.tensors_.push_back({std::move(spec), 0, bytes});
  }
  layout.Place();
  return layout;
}

void Layout::Place() {
  uint64_t at = 0;
  for (const uint32_t width : kWidths) {
    Section section{width, at, 0};
    for (size_t i = 0; i < tensors_.size(); ++i) {
      PlacedTensor& tensor = tensors_[i];
      if (LaneWidth(tensor.spec.dtype) != width) continue;
      tensor.offset = RoundUp(at, kTensorAlignment);
      if (tensor.bytes == 0) continue;
      at = tensor.offset + tensor.bytes;
      order_.push_back(i);
    }
    section.bytes = at - section.begin;
    if (section.bytes == 0) continue;
    sections_.push_back(section);
    at = RoundUp(at, frame_bytes_);
  }
  frame_count_ = at / frame_bytes_;
}

std::optional<size_t> Layout::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

FrameSpan Layout::Frame(uint64_t frame) const {
  KEEL_CHECK(frame < frame_count_, "frame " << frame << " of " << frame_count_);
  const uint64_t offset = frame * frame_bytes_;
  const auto after = std::upper_bound(
      sections_.begin(), sections_.end(), offset,
      [](uint64_t at, const Section& section) { return at < section.begin; });
  const Section& section = *std::prev(after);
  const uint64_t left = section.begin + section.bytes - offset;
  return {offset, static_cast<uint32_t>(std::min<uint64_t>(left, frame_bytes_)), section.width};
}

std::pair<size_t, size_t> Layout::InFrame(const FrameSpan& span) const {
  const auto ends_before = [&](size_t i, uint64_t at) {
    return tensors_[i].offset + tensors_[i].bytes <= at;
  };
  const auto begins_before = [&](size_t i, uint64_t at) { return tensors_[i].offset < at; };
  const auto begin = std::lower_bound(order_.begin(), order_.end(), span.offset, ends_before);
  const auto end = std::lower_bound(begin, order_.end(), span.offset + span.bytes, begins_before);
  return {begin - order_.begin(), end - order_.begin()};
}

std::vector<Piece> Layout::PiecesOf(uint64_t frame) const {
  const FrameSpan span = Frame(frame);
  const auto [begin, end] = InFrame(span);
  std::vector<Piece> pieces;
  pieces.reserve(end - begin);
  for (size_t at = begin; at < end; ++at) {
    const PlacedTensor& tensor = tensors_[order_[at]];
    const uint64_t from = std::max(tensor.offset, span.offset);
    const uint64_t to = std::min(tensor.offset + tensor.bytes, span.offset + span.bytes);
    pieces.push_back({order_[at], from - tensor.offset, static_cast<uint32_t>(from - span.offset),
                      static_cast<uint32_t>(to - from)});
  }
  return pieces;
}

size_t Layout::PieceCount(uint64_t frame) const {
  const auto [begin, end] = InFrame(Frame(frame));
  return end - begin;
}

FrameRange Layout::FramesOf(size_t tensor) const {
  const PlacedTensor& placed = tensors_.at(tensor);
  if (placed.bytes == 0) return {};
  const uint64_t first = placed.offset / frame_bytes_;
  const uint64_t last = (placed.offset + placed.bytes - 1) / frame_bytes_;
  return {first, last - first + 1};
}

FrameRange Layout::PartOf(uint32_t part, uint32_t parts) const {
  KEEL_CHECK(part < parts, "part " << part << " of " << parts);
  // frame_count_ < 2^51 and parts < 2^14, so the product does not overflow.
  const uint64_t first = frame_count_ * part / parts;
  return {first, frame_count_ * (part + 1) / parts - first};
}

uint64_t Layout::BytesIn(FrameRange frames) const {
  uint64_t bytes = 0;
  for (const Section& section : sections_) {
    const uint64_t from = std::max(section.begin, frames.first * frame_bytes_);
    const uint64_t to = std::min(section.begin + section.bytes, frames.end() * frame_bytes_);
    if (from < to) bytes += to - from;
  }
  return bytes;
}

}  // namespace keel
