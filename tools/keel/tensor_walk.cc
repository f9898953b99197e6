// Pieces end where frames do, so that no frame is decoded twice.
#include "tools/keel/tensor_walk.h"

#include <algorithm>

#include "base/text.h"
#include "ckpt/glob.h"

namespace keel {

Status WalkTensor(const Checkpoint& checkpoint, size_t tensor, Progress* progress,
                  const UsePiece& use) {
  TensorReader reader(checkpoint);
  return WalkTensor(checkpoint, &reader, tensor, progress, use);
}

Status WalkTensor(const Checkpoint& checkpoint, TensorReader* reader, size_t tensor,
                  Progress* progress, const UsePiece& use) {
  const uint64_t frame_bytes = checkpoint.layout().frame_bytes();
  const PlacedTensor& placed = checkpoint.layout().tensors().at(tensor);
  std::vector<std::byte> buffer;
  for (uint64_t at = 0; at < placed.bytes; at += buffer.size()) {
    const uint64_t to_frame_end = frame_bytes - (placed.offset + at) % frame_bytes;
    buffer.resize(std::min(to_frame_end, placed.bytes - at));
    KEEL_TRY(reader->Read(tensor, at, buffer));
    KEEL_TRY(use(at, buffer));
    if (progress != nullptr) progress->bytes_done += buffer.size();
  }
  return Ok();
}

Result<std::vector<size_t>> MatchTensors(const Layout& layout,
                                         const std::vector<std::string>& patterns) {
  std::vector<size_t> matched;
  std::vector<bool> is_used(patterns.size(), false);
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    bool is_wanted = patterns.empty();
    for (size_t p = 0; p < patterns.size(); ++p) {
      if (!GlobMatches(patterns[p], layout.tensors()[i].spec.name)) continue;
      is_used[p] = is_wanted = true;
    }
    if (is_wanted) matched.push_back(i);
  }
  for (size_t p = 0; p < patterns.size(); ++p) {
    if (is_used[p]) continue;
    return Error{Code::kInvalid, "pattern " + Shown(patterns[p]) + " matches no tensor"};
  }
  return matched;
}

}  // namespace keel
