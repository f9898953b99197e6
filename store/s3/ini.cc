// Line by line.
#include "store/s3/ini.h"

#include <algorithm>

#include "base/text.h"

namespace keel {
namespace {

// "profile x" of " profile  x ".
std::string SectionName(std::string_view inside) {
  std::string name;
  for (const char c : Trim(inside)) {
    const char plain = c == '\t' ? ' ' : c;
    if (plain != ' ' || name.back() != ' ') name += plain;
  }
  return name;
}

// A comment begins at a "#" or ";" after a blank; secrets may hold both.
std::string_view WithoutComment(std::string_view value) {
  for (size_t i = 1; i < value.size(); ++i) {
    const bool is_after_blank = value[i - 1] == ' ' || value[i - 1] == '\t';
    if (is_after_blank && (value[i] == '#' || value[i] == ';')) return value.substr(0, i);
  }
  return value;
}

}  // namespace

IniSections ParseIni(std::string_view text) {
  IniSections sections;
  std::map<std::string, std::string>* section = nullptr;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty() || trimmed[0] == '#' || trimmed[0] == ';') continue;
    if (trimmed[0] == '[') {
      const size_t close = trimmed.find(']');
      section = close == trimmed.npos ? nullptr
                                      : &sections[SectionName(trimmed.substr(1, close - 1))];
      continue;
    }
    const size_t equals = trimmed.find('=');
    const bool is_nested = line[0] == ' ' || line[0] == '\t';
    if (section == nullptr || is_nested || equals == trimmed.npos) continue;
    std::string name(Trim(trimmed.substr(0, equals)));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    (*section)[name] = Trim(WithoutComment(trimmed.substr(equals + 1)));
  }
  return sections;
}

}  // namespace keel
