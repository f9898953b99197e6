// Percent-encoding as AWS signs it: letters, digits and -._~ stay, all other bytes become %XX.
// Promises   decoding takes back whatever encoding gave; a "%" that begins no byte stays as it is.
// Threads    any.
#pragma once

#include <string>
#include <string_view>

namespace keel {

std::string PercentEncoded(std::string_view text);
// The same, but "/" stays: of a key in the path of a URL.
std::string PercentEncodedPath(std::string_view text);
// A "+" is a blank, as stores write keys in listings.
std::string PercentDecoded(std::string_view text);

}  // namespace keel
