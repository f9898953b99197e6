// Layout: where each tensor lies in the logical stream, and how the stream is cut into frames.
// Promises   a pure function of (tensors in the caller's order, frame size): every writer and
//            reader gets the same one. Tensors of one lane width lie together (8, 4, 2, then 1),
//            so a frame never holds two widths; each starts at a multiple of 64. Frame i covers
//            the stream from i * frame_bytes; only the last frame of a width is shorter.
// Does not   hold tensor bytes.
// Threads    const methods from any thread. Errors: kInvalid, naming the tensor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ckpt/dtype.h"
#include "ckpt/format.h"

namespace keel {

struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;  // empty: a scalar
  bool operator==(const TensorSpec&) const = default;
};

// "[2, 3]"; "f32 [2, 3]".
std::string ShapeText(const std::vector<int64_t>& shape);
std::string TypeText(const TensorSpec& spec);
// kInvalid: a negative dimension, or more than any memory holds.
Result<uint64_t> ContentBytes(const TensorSpec& spec);

struct PlacedTensor {
  TensorSpec spec;
  uint64_t offset = 0;  // in the stream
  uint64_t bytes = 0;
  bool operator==(const PlacedTensor&) const = default;
};

// The part of the stream that one frame holds.
struct FrameSpan {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint32_t width = 1;
};

// The part of a tensor that lies in one frame.
struct Piece {
  size_t tensor = 0;
  uint64_t tensor_offset = 0;
  uint32_t frame_offset = 0;
  uint32_t bytes = 0;
};

struct FrameRange {
  uint64_t first = 0;
  uint64_t count = 0;
  uint64_t end() const { return first + count; }
  bool operator==(const FrameRange&) const = default;
};

class Layout {
 public:
  Layout() = default;  // of no tensors
  bool operator==(const Layout&) const = default;
  static Result<Layout> Make(std::vector<TensorSpec> tensors, uint32_t frame_bytes = kFrameBytes);

  // In the caller's order; a tensor's index is its place in this list.
  const std::vector<PlacedTensor>& tensors() const { return tensors_; }
  std::optional<size_t> Find(std::string_view name) const;

  uint32_t frame_bytes() const { return frame_bytes_; }
  uint64_t frame_count() const { return frame_count_; }
  // The sum over tensors, without padding.
  uint64_t tensor_bytes() const { return tensor_bytes_; }

  FrameSpan Frame(uint64_t frame) const;
  // In the order of the stream.
  std::vector<Piece> PiecesOf(uint64_t frame) const;
  size_t PieceCount(uint64_t frame) const;
  // The frames that hold a tensor; none if it is empty.
  FrameRange FramesOf(size_t tensor) const;
  // The share of worker `part` of `parts`.
  FrameRange PartOf(uint32_t part, uint32_t parts) const;
  // The bytes of the stream that these frames hold.
  uint64_t BytesIn(FrameRange frames) const;

 private:
  struct Section {
    uint32_t width = 1;
    uint64_t begin = 0;
    uint64_t bytes = 0;
    bool operator==(const Section&) const = default;
  };

  void Place();
  // Where in order_ the tensors of a frame begin and end.
  std::pair<size_t, size_t> InFrame(const FrameSpan& span) const;

  uint32_t frame_bytes_ = kFrameBytes;
  uint64_t frame_count_ = 0;
  uint64_t tensor_bytes_ = 0;
  std::vector<PlacedTensor> tensors_;
  std::vector<size_t> order_;  // tensors that are not empty, as they lie in the stream
  std::vector<Section> sections_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace keel
