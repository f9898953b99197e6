// XXH3-128 of little-endian words.
#include "trainer/numerics/mix.h"

#include <bit>
#include <cstddef>

#include "base/digest.h"

namespace keel {

static_assert(std::endian::native == std::endian::little, "words are hashed as they lie in memory");

uint64_t Mix(std::span<const uint64_t> values) {
  const Digest digest = DigestOf(std::as_bytes(values));
  uint64_t mixed = 0;
  for (size_t i = 0; i < sizeof(mixed); ++i) {
    mixed = mixed << 8 | std::to_integer<uint64_t>(digest.bytes[i]);
  }
  return mixed;
}

uint64_t LaneSeed(uint64_t seed, uint64_t step, uint64_t lane) {
  constexpr uint64_t kLanes = 0x656E616C;  // "lane": keeps it apart from other seeds
  const uint64_t words[] = {kLanes, seed, step, lane};
  return Mix(words);
}

uint64_t DataSeed(uint64_t seed, uint64_t step, uint64_t lane) {
  constexpr uint64_t kData = 0x61746164;  // "data"
  const uint64_t words[] = {kData, seed, step, lane};
  return Mix(words);
}

}  // namespace keel
