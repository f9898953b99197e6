// Calls of libcrypto's EVP interface.
#include "store/s3/hashes.h"

#include <openssl/evp.h>

#include <array>

#include "base/base64.h"
#include "base/check.h"

namespace keel {
namespace {

// Empty: libcrypto does not compute it.
std::string DigestBytes(const EVP_MD* kind, const void* bytes, size_t size) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  if (EVP_Digest(bytes, size, digest.data(), &length, kind, nullptr) != 1) return "";
  return {reinterpret_cast<const char*>(digest.data()), length};
}

}  // namespace

std::string Sha256Of(std::string_view bytes) {
  std::string digest = DigestBytes(EVP_sha256(), bytes.data(), bytes.size());
  KEEL_CHECK(!digest.empty(), "libcrypto cannot compute SHA-256");
  return digest;
}

std::string Md5Base64(std::span<const std::byte> bytes) {
  return Base64Of(DigestBytes(EVP_md5(), bytes.data(), bytes.size()));
}

}  // namespace keel
