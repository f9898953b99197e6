// Which known name a mistyped one was probably meant to be.
// Promises   the same answer for the same list; nothing when no name is near enough to be helpful.
// Threads    any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions and
// swaps of two neighbours that lead from `a` to `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// The name nearest to `word`, the earlier of equals; none when more than a third of the letters
// differ.
std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& names);

// "; did you mean '--steps'?", or nothing: the tail of a message about an unknown name.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);

}  // namespace keel
