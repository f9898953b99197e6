// Stores that bypass the cache need whole lines of memory, so both ends are copied as usual.
#include "ckpt/copy_aside.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace keel {

#if defined(__SSE2__)

namespace {

constexpr size_t kLine = 64;
constexpr size_t kAhead = 8 * kLine;   // how far reading is ahead of writing

void CopyLine(std::byte* to, const std::byte* from) {
  _mm_prefetch(from + kAhead, _MM_HINT_NTA);   // may lie outside: then nothing happens
  for (size_t i = 0; i < kLine; i += sizeof(__m128i)) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), bytes);
  }
}

}  // namespace

void CopyAside(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t before = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  size_t at = std::min(before, bytes);
  std::memcpy(to, from, at);
  for (; bytes - at >= kLine; at += kLine) CopyLine(to + at, from + at);
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();   // orders such stores before those that tell other threads
}

#else

void CopyAside(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace keel
