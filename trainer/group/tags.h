// Tags: tell which message belongs to which operation when several kinds are in flight in one
// group.
// Promises   operations of different kinds never take each other's messages.
// Does not   tell operations of one kind apart that are kTagTurns apart: the earlier one is over.
#pragma once

#include <cstdint>

namespace keel {

enum class TagKind { kContact = 1, kGather, kNodes, kSums, kTransfer };

// What c10d calls a tag: at least 0, and below 2^31.
struct Tag {
  int value = 0;
};

inline constexpr uint64_t kTagTurns = uint64_t{1} << 24;

constexpr Tag TagOf(TagKind kind, uint64_t operation) {
  return {static_cast<int>(kind) << 24 | static_cast<int>(operation % kTagTurns)};
}

}  // namespace keel
