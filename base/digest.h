// Digest: XXH3-128, which tells whether bytes are still the ones that were written.
// Promises   the same bytes give the same digest on every machine; it is kept in the canonical
//            (big-endian) order, in which files hold it and people read it.
// Does not   withstand someone who forges bytes on purpose: it is no cryptographic hash.
// Threads    Digest is a value; a Digester belongs to one thread at a time.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

struct Digest {
  std::array<std::byte, 16> bytes{};

  // 32 digits of lower-case hex.
  std::string Hex() const;
  auto operator<=>(const Digest&) const = default;
};

// Takes what Hex() gives and nothing else; kInvalid otherwise.
Result<Digest> ParseDigest(std::string_view hex);

Digest DigestOf(std::span<const std::byte> bytes);

// The digest of bytes that come in pieces; how they are cut makes no difference.
class Digester {
 public:
  Digester();
  Digester(Digester&&) noexcept;
  Digester& operator=(Digester&&) noexcept;
  ~Digester();

  void Update(std::span<const std::byte> bytes);
  // Of all so far; more may follow.
  Digest Current() const;
  uint64_t bytes() const { return bytes_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  uint64_t bytes_ = 0;
};

}  // namespace keel
