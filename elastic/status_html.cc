// Printable first (base/text.h), then the five characters that mean something in markup.
#include "elastic/status_html.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "elastic/failure_report.h"

namespace keel {
namespace {

template <class... How>
std::string Written(double number, How... how) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Inf" : "-Inf";
  std::array<char, 400> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, how...);
  return {text.data(), end.ptr};
}

}  // namespace

std::string HtmlText(std::string_view text) {
  std::string safe;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

// A character that is cut in two becomes \xHH.
std::string HtmlText(std::string_view text, size_t bytes_max) {
  return text.size() <= bytes_max ? HtmlText(text) : HtmlText(text.substr(0, bytes_max)) + "...";
}

std::string FixedText(double number, int digits) {
  return Written(number, std::chars_format::fixed, digits);
}

std::string ShortText(double number) {
  constexpr int kDigits = 4;
  return Written(number, std::chars_format::general, kDigits);
}

std::string TimeOfDayText(int64_t wall_nanos) {
  constexpr size_t kDateBytes = 11;   // "2026-11-21T"
  constexpr size_t kTimeBytes = 8;
  return UtcText(wall_nanos).substr(kDateBytes, kTimeBytes);
}

}  // namespace keel
