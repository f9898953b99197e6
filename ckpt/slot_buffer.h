// SlotBuffer: memory aligned for direct input and output.
// Does not   clear its bytes. Threads: one at a time.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include "ckpt/format.h"

namespace keel {

class SlotBuffer {
 public:
  SlotBuffer() = default;
  explicit SlotBuffer(size_t bytes)
      : data_(static_cast<std::byte*>(
            ::operator new(bytes, std::align_val_t(kSlotAlignment)))),
        bytes_(bytes) {}
  SlotBuffer(const SlotBuffer&) = delete;
  SlotBuffer& operator=(const SlotBuffer&) = delete;
  SlotBuffer(SlotBuffer&& other) noexcept { *this = std::move(other); }
  SlotBuffer& operator=(SlotBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SlotBuffer() { ::operator delete(data_, std::align_val_t(kSlotAlignment)); }

  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

inline constexpr size_t RoundUpToSlot(size_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace keel
