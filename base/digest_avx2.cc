// XXH3-128 compiled for AVX2 from libxxhash's header, in a file of its own: what is instantiated
// here may run on such processors only, so nothing of the standard library is.
#if defined(__x86_64__) && defined(__GNUC__)
#ifdef __clang__
#include <immintrin.h>
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#include <immintrin.h>
#endif
#define XXH_INLINE_ALL
#define XXH_VECTOR 2  // XXH_AVX2: the pragma does not define __AVX2__ in time for every g++
#include <xxhash.h>
#define KEEL_HAS_AVX2 1
#endif

#include "base/digest_code.h"

namespace keel {

#if KEEL_HAS_AVX2
static_assert(XXH_VECTOR == XXH_AVX2);

static DigestHalves Of(const void* bytes, size_t count) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, count);
  return {hash.high64, hash.low64};
}

static void* Make() {
  XXH3_state_t* state = XXH3_createState();
  if (state != nullptr) XXH3_128bits_reset(state);
  return state;
}

static void Free(void* state) { XXH3_freeState(static_cast<XXH3_state_t*>(state)); }

static bool Update(void* state, const void* bytes, size_t count) {
  return XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, count) == XXH_OK;
}

static DigestHalves Current(const void* state) {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state));
  return {hash.high64, hash.low64};
}

const DigestCode* Avx2DigestCode() {
  static constexpr DigestCode code = {Of, Make, Free, Update, Current};
  return __builtin_cpu_supports("avx2") ? &code : nullptr;
}
#ifdef __clang__
#pragma clang attribute pop
#endif
#else
const DigestCode* Avx2DigestCode() { return nullptr; }
#endif

}  // namespace keel
