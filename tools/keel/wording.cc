// Numbers into words.
#include "tools/keel/wording.h"

#include <array>
#include <cstdio>

#include "base/clock.h"

namespace keel {

std::string TimeText(int64_t nanos_since_1970) {
  std::string text = UtcText(nanos_since_1970);   // "2026-11-21T08:30:00Z"
  text[text.find('T')] = ' ';
  text.pop_back();
  return text;
}

std::string RatioText(uint64_t stored, uint64_t content) {
  if (content == 0) return "-";
  std::array<char, 32> text;
  const double ratio = static_cast<double>(stored) / static_cast<double>(content);
  const int length = std::snprintf(text.data(), text.size(), "%.2f", ratio);
  return {text.data(), static_cast<size_t>(length)};
}

Json MetadataJson(const Metadata& metadata) {
  Json json = Json::object();
  for (const auto& [name, value] : metadata) {
    AppendMember(&json, name, std::visit([](const auto& held) { return Json(held); }, value));
  }
  return json;
}

Json UserJson(const Description& description) {
  Json json = Json::object();
  for (const auto& [name, value] : description.user) AppendMember(&json, name, value);
  return json;
}

}  // namespace keel
