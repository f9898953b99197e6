// Glob: patterns for tensor names: '*' stands for any text, '?' for one character of UTF-8.
// Does not   know brackets or escapes; a name is matched whole. Threads: any.
#pragma once

#include <string_view>

namespace keel {

// Takes time linear in pattern times text, whatever the pattern.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace keel
