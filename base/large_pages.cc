// madvise(MADV_HUGEPAGE), on whole large pages.
#include "base/large_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace keel {

void PreferLargePages(std::span<std::byte> place) {
  const auto at = reinterpret_cast<uintptr_t>(place.data());
  const uintptr_t begin = (at + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
  const uintptr_t end = (at + place.size()) / kLargePageBytes * kLargePageBytes;
  if (begin >= end) return;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace keel
