// Both forms of an option.
#include "elastic/launch/program_words.h"

namespace keel {

std::string ValueInWords(const std::vector<std::string>& words, const std::string& name) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(name + "=")) return words[i].substr(name.size() + 1);
  }
  return "";
}

}  // namespace keel
