// All that comes before the value has a fixed length.
#include "store/seal/sealed_value.h"

#include "store/seal/number_bytes.h"

namespace keel {
namespace {

constexpr std::string_view kBegin = "sealed1:";
constexpr std::string_view kOfValue = "value";
constexpr size_t kWriterAt = kBegin.size();
constexpr size_t kCountAt = kWriterAt + kWriterBytes;
constexpr size_t kSealAt = kCountAt + kNumberBytes;
constexpr size_t kValueAt = kSealAt + Seal::kBytes;
static_assert(kValueAt == kSealedBytesMore);

}  // namespace

std::string SealedText(const Seal& seal, const std::string& key, const SealedValue& value) {
  const std::string count = NumberBytes(value.count);
  std::string text;
  text.reserve(kSealedBytesMore + value.value.size());
  text += kBegin;
  text += value.writer;
  text += count;
  text += seal.Of({kOfValue, key, value.writer, count, value.value});
  text += value.value;
  return text;
}

std::optional<SealedValue> OpenSealed(const Seal& seal, const std::string& key,
                                      std::string_view text) {
  if (!LooksSealed(text)) return std::nullopt;
  const std::string_view writer = text.substr(kWriterAt, kWriterBytes);
  const std::string_view count = text.substr(kCountAt, kNumberBytes);
  const std::string_view value = text.substr(kValueAt);
  if (!seal.Fits(text.substr(kSealAt, Seal::kBytes), {kOfValue, key, writer, count, value})) {
    return std::nullopt;
  }
  return SealedValue{writer, NumberOf(count), value};
}

std::string_view ValueIn(std::string_view sealed) { return sealed.substr(kValueAt); }

bool LooksSealed(std::string_view text) {
  return text.size() >= kValueAt && text.starts_with(kBegin);
}

}  // namespace keel
