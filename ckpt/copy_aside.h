// CopyAside: memcpy for large memory that is not read soon.
// Promises   if the processor can, writes bypass the caches: that is twice as fast, and the caches
//            keep what they hold.
#pragma once

#include <cstddef>

namespace keel {

void CopyAside(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace keel
