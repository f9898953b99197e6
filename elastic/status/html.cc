// Applies Printable() (base/text.h), then escapes the five characters with a meaning in markup.
#include "elastic/status/html.h"

#include "base/text.h"

namespace keel {
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

std::string HtmlText(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return HtmlText(text);
  return HtmlText(Beginning(text, bytes_max)) + "...";
}

}  // namespace keel
