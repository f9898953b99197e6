// Digests by libxxhash, whose header stays in here.
#include "base/digest.h"

#include <xxhash.h>

#include <utility>

#include "base/check.h"

namespace keel {
namespace {

Digest Canonical(const XXH128_hash_t& hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  static_assert(sizeof canonical.digest == sizeof digest.bytes);
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    digest.bytes[i] = static_cast<std::byte>(canonical.digest[i]);
  }
  return digest;
}

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
    message.append(hex).append("\" is no digest: ").append(why);
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

Digest DigestOf(std::span<const std::byte> bytes) {
  return Canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

struct Digester::State {
  State() : hash(XXH3_createState()) {
    KEEL_CHECK(hash != nullptr, "out of memory for a digest");
    XXH3_128bits_reset(hash);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(hash); }

  XXH3_state_t* const hash;
};

Digester::Digester() : state_(std::make_unique<State>()) {}
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;
Digester::~Digester() = default;

void Digester::Update(std::span<const std::byte> bytes) {
  const XXH_errorcode answer = XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
  KEEL_CHECK(answer == XXH_OK, "XXH3_128bits_update: " << answer);
  bytes_ += bytes.size();
}

Digest Digester::Current() const {
  return Canonical(XXH3_128bits_digest(state_->hash));
}

}  // namespace keel
