// OpenSSL's HMAC() has been the same function since its version 1.1.
#include "base/hmac.h"

#include <dlfcn.h>

#include <array>

#include "base/check.h"

namespace keel {
namespace {

constexpr std::array kNames = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"};
constexpr size_t kBytes = 32;

struct Libcrypto {
  using Kind = const void* (*)();
  using Function = unsigned char* (*)(const void* kind, const void* key, int key_bytes,
                                      const unsigned char* text, size_t text_bytes,
                                      unsigned char* digest, unsigned int* digest_bytes);
  Kind sha256 = nullptr;
  Function hmac = nullptr;
};

Libcrypto Load() {
  for (const char* const name : kNames) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    const Libcrypto found{reinterpret_cast<Libcrypto::Kind>(dlsym(library, "EVP_sha256")),
                          reinterpret_cast<Libcrypto::Function>(dlsym(library, "HMAC"))};
    if (found.sha256 != nullptr && found.hmac != nullptr) return found;
  }
  return {};
}

const Libcrypto& Loaded() {
  static const Libcrypto libcrypto = Load();
  return libcrypto;
}

}  // namespace

Status HmacReady() {
  if (Loaded().hmac != nullptr) return Ok();
  return Error{Code::kNotFound, "this machine has no libcrypto.so.3, which seals what launchers "
                                "and workers say to each other; install OpenSSL (libssl3)"};
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  const Libcrypto& libcrypto = Loaded();
  KEEL_CHECK(libcrypto.hmac != nullptr, "an HMAC is wanted, and there is no libcrypto");
  std::array<unsigned char, kBytes> digest;
  unsigned int length = 0;
  const unsigned char* const done = libcrypto.hmac(
      libcrypto.sha256(), key.data(), static_cast<int>(key.size()),
      reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &length);
  KEEL_CHECK(done != nullptr && length == kBytes, "libcrypto cannot compute HMAC-SHA256");
  return {reinterpret_cast<const char*>(digest.data()), length};
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace keel
