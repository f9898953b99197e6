// XXH3-128 as code for one kind of processor. Only base/digest.cc and its tests need it.
// Promises   all kinds give the same digests; DigestCodeHere() is the fastest that runs here.
// Does not   let states of two kinds meet: a state goes back to the code that made it.
// Threads    the code: any. A state: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel {

// In the order of the value: the high half first.
struct DigestHalves {
  uint64_t high = 0;
  uint64_t low = 0;
};

struct DigestCode {
  DigestHalves (*of)(const void* bytes, size_t count);
  void* (*make)();  // null: out of memory
  void (*free)(void* state);
  bool (*update)(void* state, const void* bytes, size_t count);
  DigestHalves (*current)(const void* state);
};

// Of libxxhash, which its distribution builds for every processor of the architecture.
extern const DigestCode kLibraryDigestCode;
// For AVX2, half as fast again; null where the compiler or this processor lacks it.
const DigestCode* Avx2DigestCode();
const DigestCode& DigestCodeHere();

}  // namespace keel
