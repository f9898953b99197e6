// CopiedSnapshot: one writer's share of the tensors, copied aside so that training can go on.
// Promises   holds exactly the frames of its part; Copy() reuses the memory of the former copy.
// Does not   copy the whole state: a writer saves its share only.
// Threads    Reserve() and Copy() while nobody reads; reading from any thread.
#pragma once

#include <atomic>
#include <vector>

#include "ckpt/layout.h"
#include "ckpt/slot_buffer.h"
#include "ckpt/tensor_source.h"

namespace keel {

class CopiedSnapshot : public TensorSource {
 public:
  // Gets the memory that Copy() will need: that takes a system ten times as long as copying. Ends
  // early once `stop` is set.
  void Reserve(const Layout& layout, uint32_t part, uint32_t parts,
               const std::atomic<bool>& stop);
  // Takes the frames of `part` of `parts` from `tensors`, which are in the layout's order; those
  // outside the part may be empty.
  void Copy(const Layout& layout, uint32_t part, uint32_t parts,
            const std::vector<std::span<const std::byte>>& tensors);

  const std::byte* Borrow(size_t tensor, uint64_t offset, size_t bytes) override;
  Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into) override;

 private:
  void Hold(size_t bytes);

  Layout layout_;
  SlotBuffer buffer_;           // may be larger than its contents
  std::span<std::byte> held_;
  uint64_t stream_offset_ = 0;  // of held_
};

}  // namespace keel
