// NumberBytes: a whole number as eight bytes, the lowest first, on every machine.
// Threads    any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace keel {

inline constexpr size_t kNumberBytes = 8;

inline std::string NumberBytes(uint64_t number) {
  std::string bytes;
  for (size_t i = 0; i < kNumberBytes; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

// Of the first eight bytes.
inline uint64_t NumberOf(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < kNumberBytes; ++i) {
    number |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return number;
}

}  // namespace keel
