// CopyAside: memcpy for much memory that nobody reads soon.
// Promises   where the processor can, what is written does not pass through the caches: twice as
//            fast, and what others have there stays.
#pragma once

#include <cstddef>

namespace keel {

void CopyAside(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace keel
