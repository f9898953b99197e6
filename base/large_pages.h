// Large pages for memory that is worked through from end to end.
// Promises   a hint that changes no byte: where the system does not take it, all goes on as before.
//            Asks only for pages that lie wholly within the place, so that no neighbour grows.
// Does not   help memory that was written to before: its pages are there already.
// Threads    any.
#pragma once

#include <cstddef>
#include <span>

namespace keel {

// What x86 and most ARM systems mean by one.
inline constexpr size_t kLargePageBytes = size_t{2} << 20;

void PreferLargePages(std::span<std::byte> place);

}  // namespace keel
