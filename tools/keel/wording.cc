// Numbers into words.
#include "tools/keel/wording.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace keel {

std::string TimeText(int64_t nanos_since_1970) {
  const std::time_t seconds = nanos_since_1970 / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
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
    json[name] = std::visit([](const auto& held) { return Json(held); }, value);
  }
  return json;
}

Json UserJson(const Description& description) {
  Json json = Json::object();
  for (const auto& [name, value] : description.user) json[name] = value;
  return json;
}

}  // namespace keel
