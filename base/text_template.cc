// Goes from one dollar sign to the next.
#include "base/text_template.h"

#include <cstddef>

namespace keel {
namespace {

bool StartsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool ContinuesName(char c) { return StartsName(c) || (c >= '0' && c <= '9'); }

// The name at the beginning of `text`, "" where there is none.
std::string_view LeadingName(std::string_view text) {
  if (text.empty() || !StartsName(text.front())) return {};
  size_t size = 1;
  while (size < text.size() && ContinuesName(text[size])) ++size;
  return text.substr(0, size);
}

// "$name" or "${name}", or just the dollar.
struct Reference {
  std::string_view name;
  size_t size = 1;
};

Reference ReferenceAt(std::string_view text) {
  if (text.size() > 1 && text[1] == '{') {
    const std::string_view name = LeadingName(text.substr(2));
    const size_t end = 2 + name.size();
    if (name.empty() || end >= text.size() || text[end] != '}') return {};
    return {name, end + 1};
  }
  const std::string_view name = LeadingName(text.substr(1));
  return {name, 1 + name.size()};
}

}  // namespace

std::string SubstituteText(std::string_view text,
                           const std::map<std::string, std::string>& values) {
  std::string made;
  while (!text.empty()) {
    const size_t dollar = text.find('$');
    made += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    if (text.starts_with("$$")) {
      made += '$';
      text.remove_prefix(2);
      continue;
    }
    const Reference reference = ReferenceAt(text);
    const auto found = values.find(std::string(reference.name));
    const bool is_known = !reference.name.empty() && found != values.end();
    made += is_known ? found->second : std::string(text.substr(0, reference.size));
    text.remove_prefix(reference.size);
  }
  return made;
}

}  // namespace keel
