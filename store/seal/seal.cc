// Each part goes in with its length before it.
#include "store/seal/seal.h"

#include "base/hmac.h"
#include "base/random.h"
#include "base/text.h"
#include "store/seal/number_bytes.h"

namespace keel {
namespace {

std::string Framed(std::initializer_list<std::string_view> words) {
  std::string framed;
  for (const std::string_view part : words) {
    framed += NumberBytes(part.size());
    framed += part;
  }
  return framed;
}

}  // namespace

Seal Seal::For(std::initializer_list<std::string_view> purpose) const {
  return Seal(HmacSha256(secret_, "for" + Framed(purpose)));
}

std::string Seal::Of(std::initializer_list<std::string_view> words) const {
  return HmacSha256(secret_, "of" + Framed(words)).substr(0, kBytes);
}

bool Seal::Fits(std::string_view seal, std::initializer_list<std::string_view> words) const {
  return SameSecret(seal, Of(words));
}

std::string Seal::Nonce() {
  return HexText(NumberBytes(EntropySeed()) + NumberBytes(EntropySeed()));
}

}  // namespace keel
