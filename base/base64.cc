// Three bytes make four letters; the last group is padded.
#include "base/base64.h"

#include <array>
#include <cstdint>

#include "base/text.h"

namespace keel {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoLetter = 255;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = kNoLetter;
  for (size_t i = 0; i < kLetters.size(); ++i) {
    values[static_cast<uint8_t>(kLetters[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

Error NotBase64(std::string_view text) {
  return {Code::kCorrupt, Shown(text) + " is not base64"};
}

}  // namespace

std::string Base64Of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      text.push_back(i <= count ? kLetters[group >> (18 - 6 * i) & 63] : '=');
    }
  }
  return text;
}

Result<std::string> BytesOfBase64(std::string_view text) {
  if (text.size() % 4 != 0) return NotBase64(text);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const bool is_last = at + 4 == text.size();
    size_t letters = 4;
    while (is_last && letters > 2 && text[at + letters - 1] == '=') --letters;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t value = i < letters ? kValues[static_cast<uint8_t>(text[at + i])] : 0;
      if (value == kNoLetter) return NotBase64(text);
      group = group << 6 | value;
    }
    // Bits that belong to no byte must be zero, or two texts would mean the same bytes.
    if ((group & ((1U << (8 * (4 - letters))) - 1)) != 0) return NotBase64(text);
    for (size_t i = 0; i + 1 < letters; ++i) {
      bytes.push_back(static_cast<char>(group >> (16 - 8 * i) & 255));
    }
  }
  return bytes;
}

}  // namespace keel
