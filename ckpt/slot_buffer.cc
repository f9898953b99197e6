// Ordinary memory, with a word to the kernel about its pages.
#include "ckpt/slot_buffer.h"

#include <sys/mman.h>

#include <new>

namespace keel {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::align_val_t AlignmentOf(size_t bytes) {
  return std::align_val_t(bytes < kHugePage ? kSlotAlignment : kHugePage);
}

}  // namespace

// In pages of 4 KiB the kernel would spend longer on a state's pages than we on copying it.
SlotBuffer::SlotBuffer(size_t bytes)
    : data_(static_cast<std::byte*>(::operator new(bytes, AlignmentOf(bytes)))), bytes_(bytes) {
  const size_t whole_pages = bytes / kHugePage * kHugePage;
  if (whole_pages != 0) (void)madvise(data_, whole_pages, MADV_HUGEPAGE);
}

SlotBuffer::~SlotBuffer() { ::operator delete(data_, AlignmentOf(bytes_)); }

}  // namespace keel
