// SealedValue: a value of a store, with a seal for its key, who wrote it, and how many values that
// one had written before.
//
//   sealed1:   8 bytes
//   writer     8 bytes, which no other connection of any process has
//   count      8 bytes, the lowest first; rises with each value of that writer
//   seal      16 bytes, of the key, the writer, the count and the value
//   value     the rest
//
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/seal/seal.h"

namespace keel {

// Views of what it was made of.
struct SealedValue {
  std::string_view writer;
  uint64_t count = 0;
  std::string_view value;
  bool operator==(const SealedValue&) const = default;
};

inline constexpr size_t kWriterBytes = 8;
// So many bytes longer than what it seals.
inline constexpr size_t kSealedBytesMore = 8 + kWriterBytes + 8 + Seal::kBytes;

std::string SealedText(const Seal& seal, const std::string& key, const SealedValue& value);
// Nothing: nobody who has the secret wrote that under this key.
std::optional<SealedValue> OpenSealed(const Seal& seal, const std::string& key,
                                      std::string_view text);
// Of a text that was opened before.
std::string_view ValueIn(std::string_view sealed);
// Whether somebody has sealed it, be it with whatever secret.
bool LooksSealed(std::string_view text);

}  // namespace keel
