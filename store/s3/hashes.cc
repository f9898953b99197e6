// Calls of libcrypto's EVP interface.
#include "store/s3/hashes.h"

#include <openssl/evp.h>

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

std::string Md5Base64(std::span<const std::byte> bytes) {
  return Base64Of(DigestBytes(EVP_md5(), bytes.data(), bytes.size()));
}

}  // namespace keel
