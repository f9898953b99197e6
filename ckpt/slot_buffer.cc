// Ordinary memory, with a hint to the kernel about its pages.
#include "ckpt/slot_buffer.h"

#include <new>

#include "base/large_pages.h"

namespace keel {
namespace {

std::align_val_t AlignmentOf(size_t bytes) {
  return std::align_val_t(bytes < kLargePageBytes ? kSlotAlignment : kLargePageBytes);
}

}  // namespace

// With pages of 4 KiB, the kernel would spend longer on a state's pages than we on copying it.
SlotBuffer::SlotBuffer(size_t bytes)
    : data_(static_cast<std::byte*>(::operator new(bytes, AlignmentOf(bytes)))), bytes_(bytes) {
  PreferLargePages({data_, bytes_});
}

SlotBuffer::~SlotBuffer() { ::operator delete(data_, AlignmentOf(bytes_)); }

}  // namespace keel
