// Finds the nearest name by edit distance.
#include "base/nearest.h"

#include <algorithm>

namespace keel {
namespace {

// Nobody mistypes a longer name, and the distance costs the product of both lengths.
constexpr size_t kWordMax = 100;

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Rows of the usual table, of which only the last three are ever read.
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kWordMax) return std::nullopt;
  std::optional<std::string> nearest;
  size_t smallest = SIZE_MAX;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(word, name);
    const size_t allowed = std::max<size_t>(1, std::max(word.size(), name.size()) / 3);
    if (distance <= allowed && distance < smallest && distance < name.size()) {
      smallest = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& names) {
  const std::optional<std::string> nearest = Nearest(word, names);
  return nearest ? "; did you mean '" + *nearest + "'?" : std::string();
}

}  // namespace keel
