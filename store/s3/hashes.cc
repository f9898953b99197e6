// Calls of libcrypto's EVP interface.
#include "store/s3/hashes.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "base/base64.h"
#include "base/check.h"

namespace keel {
namespace {

std::string DigestBytes(const EVP_MD* kind, const void* bytes, size_t size) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  const int done = EVP_Digest(bytes, size, digest.data(), &length, kind, nullptr);
  KEEL_CHECK(done == 1, "libcrypto cannot compute the hash " << EVP_MD_get0_name(kind));
  return {reinterpret_cast<const char*>(digest.data()), length};
}

}  // namespace

std::string Sha256Of(std::string_view bytes) {
  return DigestBytes(EVP_sha256(), bytes.data(), bytes.size());
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* const done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                         bytes, text.size(), digest.data(), &length);
  KEEL_CHECK(done != nullptr, "libcrypto cannot compute HMAC-SHA256");
  return {reinterpret_cast<const char*>(digest.data()), length};
}

std::string Md5Base64(std::span<const std::byte> bytes) {
  return Base64Of(DigestBytes(EVP_md5(), bytes.data(), bytes.size()));
}

std::string HexText(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

}  // namespace keel
