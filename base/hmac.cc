// These functions have been the same in OpenSSL since its version 1.1.
#include "base/hmac.h"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <optional>

#include "base/check.h"

namespace keel {
namespace {

constexpr std::array kNames = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"};
constexpr size_t kBytes = 32;

// Those of its functions that are used, by their own names.
struct Libcrypto {
  const void* (*EVP_sha256)();
  void* (*HMAC_CTX_new)();
  void (*HMAC_CTX_free)(void* state);
  int (*HMAC_Init_ex)(void* state, const void* key, int key_bytes, const void* kind, void* engine);
  int (*HMAC_Update)(void* state, const unsigned char* text, size_t bytes);
  int (*HMAC_Final)(void* state, unsigned char* digest, unsigned int* bytes);
};

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<Libcrypto> Load() {
  for (const char* const name : kNames) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    Libcrypto found{};
    const bool is_whole = Find(library, "EVP_sha256", found.EVP_sha256) &&
                          Find(library, "HMAC_CTX_new", found.HMAC_CTX_new) &&
                          Find(library, "HMAC_CTX_free", found.HMAC_CTX_free) &&
                          Find(library, "HMAC_Init_ex", found.HMAC_Init_ex) &&
                          Find(library, "HMAC_Update", found.HMAC_Update) &&
                          Find(library, "HMAC_Final", found.HMAC_Final);
    if (is_whole) return found;
  }
  return std::nullopt;
}

const std::optional<Libcrypto>& Loaded() {
  static const std::optional<Libcrypto> libcrypto = Load();
  return libcrypto;
}

}  // namespace

Status HmacReady() {
  if (Loaded()) return Ok();
  return Error{Code::kNotFound, "this machine has no libcrypto.so.3, which signs requests to "
                                "buckets, and seals what a job with a token says; install OpenSSL "
                                "(libssl3)"};
}

std::string HmacSha256(std::string_view key, std::span<const std::string_view> parts) {
  KEEL_CHECK(Loaded(), "an HMAC is wanted, and there is no libcrypto");
  const Libcrypto& libcrypto = *Loaded();
  const std::unique_ptr<void, void (*)(void*)> state(libcrypto.HMAC_CTX_new(),
                                                     libcrypto.HMAC_CTX_free);
  bool is_done = state && libcrypto.HMAC_Init_ex(state.get(), key.data(),
                                                 static_cast<int>(key.size()),
                                                 libcrypto.EVP_sha256(), nullptr) == 1;
  for (const std::string_view part : parts) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(part.data());
    is_done = is_done && libcrypto.HMAC_Update(state.get(), bytes, part.size()) == 1;
  }
  std::array<unsigned char, kBytes> digest;
  unsigned int length = 0;
  is_done = is_done && libcrypto.HMAC_Final(state.get(), digest.data(), &length) == 1;
  KEEL_CHECK(is_done && length == kBytes, "libcrypto cannot compute HMAC-SHA256");
  return {reinterpret_cast<const char*>(digest.data()), length};
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  return HmacSha256(key, std::span(&text, 1));
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
