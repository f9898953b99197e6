// Word by word, wherever it stands.
#include "elastic/protocol/differing_words.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace keel {

std::string DifferingWords(std::string_view text, std::string_view other) {
  const std::vector<std::string> others = SplitList(other, ' ');
  std::vector<std::string> words;
  for (const std::string& word : SplitList(text, ' ')) {
    if (std::find(others.begin(), others.end(), word) == others.end()) words.push_back(word);
  }
  return JoinList(words, " ");
}

}  // namespace keel
