// Long parts are not copied.
#include "store/seal/seal.h"

#include <vector>

#include "base/hmac.h"
#include "base/random.h"
#include "base/text.h"
#include "store/seal/number_bytes.h"

namespace keel {
namespace {

// The key's HMAC of `kind`, and of each part with its length before it.
std::string Sum(const std::string& secret, std::string_view kind,
                std::initializer_list<std::string_view> words) {
  std::vector<std::string> lengths;
  for (const std::string_view part : words) lengths.push_back(NumberBytes(part.size()));
  std::vector<std::string_view> parts = {kind};
  for (size_t i = 0; i < words.size(); ++i) {
    parts.push_back(lengths[i]);
    parts.push_back(words.begin()[i]);
  }
  return HmacSha256(secret, parts);
}

}  // namespace

Seal Seal::For(std::initializer_list<std::string_view> purpose) const {
  return Seal(Sum(secret_, "for", purpose));
}

std::string Seal::Of(std::initializer_list<std::string_view> words) const {
  return Sum(secret_, "of", words).substr(0, kBytes);
}

bool Seal::Fits(std::string_view seal, std::initializer_list<std::string_view> words) const {
  return SameSecret(seal, Of(words));
}

std::string Seal::Nonce() {
  return HexText(NumberBytes(EntropySeed()) + NumberBytes(EntropySeed()));
}

}  // namespace keel
