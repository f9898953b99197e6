// SubstituteText: ${name} and $name in a text, by the rules of Python's Template.safe_substitute(),
// which torchrun applies to workers' arguments and to line prefixes.
// Promises   $$ becomes $; a name that is not given stays as it is written; nothing else changes.
// Threads    any.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace keel {

std::string SubstituteText(std::string_view text, const std::map<std::string, std::string>& values);

}  // namespace keel
