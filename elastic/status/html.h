// Escaped texts of the status page.
// Promises   whatever bytes HtmlText() is given, it returns text that is safe in HTML, in SVG, and
//            within an attribute's double quotes: no tag, no entity of its own, no control
//            character, valid UTF-8.
// Threads    pure functions.
#pragma once

#include <string>
#include <string_view>

namespace keel {

std::string HtmlText(std::string_view text);
// The same, cut if it is longer than `bytes_max`.
std::string HtmlText(std::string_view text, size_t bytes_max);

}  // namespace keel
