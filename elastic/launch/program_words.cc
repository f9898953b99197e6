// All forms of an option.
#include "elastic/launch/program_words.h"

namespace keel {

std::string ValueInWords(const std::vector<std::string>& words, const std::string& name) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(name + "=")) return words[i].substr(name.size() + 1);
  }
  return "";
}

bool IsInWords(const std::vector<std::string>& words, const std::string& name) {
  bool is_in = false;
  for (const std::string& word : words) {
    if (word == "--" + name || word == "--" + name + "=true") is_in = true;
    if (word == "--no-" + name || word == "--" + name + "=false") is_in = false;
  }
  return is_in;
}

}  // namespace keel
