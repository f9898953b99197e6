// SlotBuffer: memory aligned for direct input and output; large buffers use huge pages if the
// system has them.
// Does not   clear its bytes. Threads: one at a time.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "ckpt/format.h"

namespace keel {

class SlotBuffer {
 public:
  SlotBuffer() = default;
  explicit SlotBuffer(size_t bytes);
  SlotBuffer(const SlotBuffer&) = delete;
  SlotBuffer& operator=(const SlotBuffer&) = delete;
  SlotBuffer(SlotBuffer&& other) noexcept { *this = std::move(other); }
  SlotBuffer& operator=(SlotBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SlotBuffer();

  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

inline constexpr size_t RoundUpToSlot(size_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace keel
