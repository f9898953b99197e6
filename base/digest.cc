// Digests by libxxhash, whose header stays in here and in digest_avx2.cc.
#include "base/digest.h"

#include <xxhash.h>

#include <utility>

#include "base/check.h"
#include "base/digest_code.h"

namespace keel {
namespace {

Digest Canonical(const DigestHalves& hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, {.low64 = hash.low, .high64 = hash.high});
  Digest digest;
  static_assert(sizeof canonical.digest == sizeof digest.bytes);
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    digest.bytes[i] = static_cast<std::byte>(canonical.digest[i]);
  }
  return digest;
}

DigestHalves HalvesOf(const XXH128_hash_t& hash) { return {hash.high64, hash.low64}; }

// The value of a lower-case hex digit; -1 for anything else.
int ValueOf(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::Hex() const {
  std::string hex;
  for (const std::byte byte : bytes) {
    hex += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    hex += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  return hex;
}

Result<Digest> ParseDigest(std::string_view hex) {
  const auto refused = [&](const std::string& why) {
    std::string message = "\"";
    message.append(hex).append("\" is not a digest: ").append(why);
    return Error{Code::kInvalid, std::move(message)};
  };
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) {
    return refused("it has " + std::to_string(hex.size()) + " digits, not 32");
  }
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = ValueOf(hex[2 * i]);
    const int low = ValueOf(hex[2 * i + 1]);
    if (high < 0 || low < 0) return refused("only 0-9 and a-f may stand in it");
    digest.bytes[i] = static_cast<std::byte>(high << 4 | low);
  }
  return digest;
}

const DigestCode kLibraryDigestCode = {
    [](const void* bytes, size_t count) { return HalvesOf(XXH3_128bits(bytes, count)); },
    []() -> void* {
      XXH3_state_t* state = XXH3_createState();
      if (state != nullptr) XXH3_128bits_reset(state);
      return state;
    },
    [](void* state) { XXH3_freeState(static_cast<XXH3_state_t*>(state)); },
    [](void* state, const void* bytes, size_t count) {
      return XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, count) == XXH_OK;
    },
    [](const void* state) {
      return HalvesOf(XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state)));
    }};

const DigestCode& DigestCodeHere() {
  static const DigestCode* const avx2 = Avx2DigestCode();
  return avx2 != nullptr ? *avx2 : kLibraryDigestCode;
}

Digest DigestOf(std::span<const std::byte> bytes) {
  return Canonical(DigestCodeHere().of(bytes.data(), bytes.size()));
}

struct Digester::State {
  State() : code(DigestCodeHere()), hash(code.make()) {
    KEEL_CHECK(hash != nullptr, "out of memory for a digest");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { code.free(hash); }

  const DigestCode& code;
  void* const hash;
};

Digester::Digester() : state_(std::make_unique<State>()) {}
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;
Digester::~Digester() = default;

void Digester::Update(std::span<const std::byte> bytes) {
  const bool taken = state_->code.update(state_->hash, bytes.data(), bytes.size());
  KEEL_CHECK(taken, "XXH3_128bits_update refuses " << bytes.size() << " bytes");
  bytes_ += bytes.size();
}

Digest Digester::Current() const { return Canonical(state_->code.current(state_->hash)); }

}  // namespace keel
