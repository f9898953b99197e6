// The hashes that S3 asks for, from OpenSSL's libcrypto.
// Promises   the digest's own bytes, unless a name says Base64.
// Threads    any. Errors: none; a libcrypto that lacks SHA-256 is a checked bug.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace keel {

std::string Sha256Of(std::string_view bytes);
// Of `Content-MD5`: no protection against forgery, only against damage on the way. Empty where
// libcrypto has no such hash, as in FIPS mode.
std::string Md5Base64(std::span<const std::byte> bytes);

}  // namespace keel
