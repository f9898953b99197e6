// Escaped texts of the status page.
// Promises   whatever bytes HtmlText() is given, what it returns is text in HTML and in SVG, and
//            within an attribute's double quotes: no tag, no entity of its own, no control
//            character, valid UTF-8.
// Threads    pure functions.
#pragma once

#include <string>
#include <string_view>

namespace keel {

std::string HtmlText(std::string_view text);
// The same, cut where it is long.
std::string HtmlText(std::string_view text, size_t bytes_max);

}  // namespace keel
