// HMAC-SHA256, from the libcrypto of this machine, which is loaded when it is first needed: whoever
// takes our libraries needs no OpenSSL until somebody gives him a secret.
// Promises   the 32 bytes of RFC 2104 and FIPS 180-4.
// Threads    any.
// Errors     of HmacReady(): kNotFound: this machine has no libcrypto.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

// To be asked before the first HmacSha256(), which without a libcrypto is a checked bug.
Status HmacReady();
// Of the parts as if they were one text.
std::string HmacSha256(std::string_view key, std::span<const std::string_view> parts);
std::string HmacSha256(std::string_view key, std::string_view text);

// Whether both are the same, in a time that does not depend on where they differ.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace keel
