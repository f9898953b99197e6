// DifferingWords: what differs between two long lines of name=value, such as fingerprints, so that
// a message shows both values and not the beginnings of both lines.
// Threads    a pure function.
#pragma once

#include <string>
#include <string_view>

namespace keel {

// The words of `text` that `other` lacks, in their order: "threads=2 cpu=avx2".
std::string DifferingWords(std::string_view text, std::string_view other);

}  // namespace keel
