// Small texts of the status page: escaped, and numbers as people read them.
// Promises   whatever bytes HtmlText() is given, what it returns is text in HTML and in SVG, and
//            within an attribute's double quotes: no tag, no entity of its own, no control
//            character, valid UTF-8. Nothing depends on the locale.
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace keel {

std::string HtmlText(std::string_view text);
// The same, cut where it is long.
std::string HtmlText(std::string_view text, size_t bytes_max);

// With so many digits behind the point: "1.50".
std::string FixedText(double number, int digits);
// Four digits that count: "0.03125", "12.3", "4.5e-07"
std::string ShortText(double number);
// "08:30:00", UTC.
std::string TimeOfDayText(int64_t wall_nanos);

}  // namespace keel
