// The calendar is glibc's, and the reading of HTTP's dates libcurl's.
#include "store/s3/times.h"

#include <curl/curl.h>
#include <time.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace keel {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// Nanoseconds of 64 bits reach to 2262. Keys for ever end in 9999.
constexpr int kYearMin = 1970;
constexpr int kYearMax = 2200;
constexpr int64_t kSecondsMax = 7'258'118'400;  // 2200

// The number in `text` from `at` on, of so many digits; -1: there is none.
int NumberAt(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return -1;
  int number = 0;
  const char* const end = text.data() + at + digits;
  const auto [stop, failure] = std::from_chars(text.data() + at, end, number);
  return stop == end && failure == std::errc() ? number : -1;
}

}  // namespace

std::string AmzDateText(int64_t wall_ns) {
  std::string text;
  for (const char c : UtcText(wall_ns)) {
    if (c != '-' && c != ':') text += c;
  }
  return text;
}

std::optional<int64_t> ParseIsoTime(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || text.back() != 'Z') return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return std::nullopt;
  }
  tm parts{};
  const int year = NumberAt(text, 0, 4);
  if (year < kYearMin) return std::nullopt;
  parts.tm_year = std::min(year, kYearMax) - 1900;
  parts.tm_mon = NumberAt(text, 5, 2) - 1;
  parts.tm_mday = NumberAt(text, 8, 2);
  parts.tm_hour = NumberAt(text, 11, 2);
  parts.tm_min = NumberAt(text, 14, 2);
  parts.tm_sec = NumberAt(text, 17, 2);
  int64_t ns = static_cast<int64_t>(timegm(&parts)) * kSecond;
  text.remove_suffix(1);
  if (text.size() == kForm.size()) return ns;
  if (text[kForm.size()] != '.') return std::nullopt;
  int64_t unit = kSecond / 10;
  for (const char c : text.substr(kForm.size() + 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    ns += (c - '0') * unit;
    unit /= 10;
  }
  return ns;
}

std::optional<int64_t> ParseHttpDate(const std::string& text) {
  const time_t seconds = curl_getdate(text.c_str(), nullptr);
  if (seconds < 0 || seconds > kSecondsMax) return std::nullopt;
  return static_cast<int64_t>(seconds) * kSecond;
}

}  // namespace keel
