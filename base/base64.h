// Base64 as JSON carries bytes: the alphabet with + and /, padded with =.
// Promises   decoding takes exactly what encoding gives; any other text is refused.
// Threads    any. Errors: kCorrupt.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

std::string Base64Of(std::string_view bytes);
Result<std::string> BytesOfBase64(std::string_view text);

}  // namespace keel
