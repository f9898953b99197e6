// Runs of elements, cut where frames end.
#include "tools/keel/element_walk.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace keel {
namespace {

class ElementWalk {
 public:
  ElementWalk(const Checkpoint& checkpoint, size_t tensor, const UseElements& use)
      : reader_(checkpoint),
        tensor_(tensor),
        placed_(checkpoint.layout().tensors().at(tensor)),
        frame_bytes_(checkpoint.layout().frame_bytes()),
        element_(DtypeBytes(placed_.spec.dtype)),
        use_(use) {}

  Status Walk(ElementRun run) {
    while (run.count > 0) {
      KEEL_TRY(Load(run.first * element_));
      const uint64_t count = InPiece(run);
      KEEL_TRY(Hand(run.first, run.step, count));
      // What follows the last one wraps around where a step back ends; it is not used.
      run.first += count * static_cast<uint64_t>(run.step);
      run.count -= count;
    }
    return Ok();
  }

  size_t element_bytes() const { return element_; }

 private:
  // Reads the part of the tensor that shares a frame with its byte `at`.
  Status Load(uint64_t at) {
    if (at >= piece_at_ && at - piece_at_ < piece_.size()) return Ok();
    const uint64_t in_frame = (placed_.offset + at) % frame_bytes_;
    const uint64_t begin = at - std::min(at, in_frame);
    const uint64_t end = std::min(placed_.bytes, at - in_frame + frame_bytes_);
    piece_.clear();  // after an error nothing is loaded
    std::vector<std::byte> bytes(end - begin);
    KEEL_TRY(reader_.Read(tensor_, begin, bytes));
    piece_ = std::move(bytes);
    piece_at_ = begin;
    return Ok();
  }

  // How many of the run lie in the piece, which holds the first.
  uint64_t InPiece(const ElementRun& run) const {
    const uint64_t before = run.first - piece_at_ / element_;
    if (run.step < 0) {
      return std::min(run.count, before / (uint64_t{0} - static_cast<uint64_t>(run.step)) + 1);
    }
    const uint64_t behind = piece_.size() / element_ - 1 - before;
    return std::min(run.count, behind / static_cast<uint64_t>(run.step) + 1);
  }

  Status Hand(uint64_t first, int64_t step, uint64_t count) {
    const std::byte* const from = piece_.data() + (first * element_ - piece_at_);
    if (step == 1) return use_({from, count * element_});
    gathered_.resize(count * element_);
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(gathered_.data() + i * element_,
                  from + static_cast<int64_t>(i) * step * static_cast<int64_t>(element_), element_);
    }
    return use_(gathered_);
  }

  TensorReader reader_;
  const size_t tensor_;
  const PlacedTensor& placed_;
  const uint64_t frame_bytes_;
  const size_t element_;
  const UseElements& use_;
  uint64_t piece_at_ = 0;  // in the tensor
  std::vector<std::byte> piece_;
  std::vector<std::byte> gathered_;
};

}  // namespace

Status WalkElements(const Checkpoint& checkpoint, size_t tensor, const Slice& slice,
                    Progress* progress, const UseElements& use) {
  ElementWalk walk(checkpoint, tensor, use);
  SliceRuns runs(slice);
  for (ElementRun run; runs.Next(&run);) {
    KEEL_TRY(walk.Walk(run));
    if (progress != nullptr) progress->bytes_done += run.count * walk.element_bytes();
  }
  return Ok();
}

}  // namespace keel
