// xoshiro256++ (Blackman and Vigna), its state filled by splitmix64 from the seed.
#include "base/random.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace keel {
namespace {

uint64_t Mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t SplitMix(uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  return Mixed(state);
}

// FNV-1a: names are short, and the result is mixed once more.
uint64_t HashOfName(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return hash;
}

}  // namespace

Random::Random(uint64_t seed) : seed_(seed) {
  for (uint64_t& word : state_) word = SplitMix(seed);
}

Random Random::Fork(std::string_view name) const {
  uint64_t state = seed_;
  return Random(Mixed(SplitMix(state) ^ HashOfName(name)));
}

uint64_t Random::Next() {
  auto& s = state_;
  const uint64_t answer = std::rotl(s[0] + s[3], 23) + s[0];
  const uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = std::rotl(s[3], 45);
  return answer;
}

uint64_t Random::Uniform(uint64_t bound) {
  KEEL_CHECK(bound > 0, "Uniform(0) has no answer");
  // 2^64 is rarely a multiple of the bound: the first 2^64 % bound numbers are thrown back.
  const uint64_t surplus = (0 - bound) % bound;
  for (;;) {
    const uint64_t drawn = Next();
    if (drawn >= surplus) return drawn % bound;
  }
}

double Random::Double() {
  return static_cast<double>(Next() >> 11) * 0x1p-53;
}

void Random::Bytes(std::span<std::byte> into) {
  for (size_t at = 0; at < into.size();) {
    uint64_t word = Next();
    for (int byte = 0; byte < 8 && at < into.size(); ++byte, word >>= 8) {
      into[at++] = static_cast<std::byte>(word & 0xFF);
    }
  }
}

uint64_t EntropySeed() {
  uint64_t seed = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  KEEL_CHECK(got == sizeof seed, "getrandom: " << std::strerror(errno));
  return seed;
}

std::string RandomId(Random& random, size_t digits) {
  std::string id;
  for (size_t i = 0; i < digits; ++i) id += "0123456789abcdef"[random.Uniform(16)];
  return id;
}

}  // namespace keel
