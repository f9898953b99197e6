// One recursive shuffle over 16-byte vectors: the even bytes are the even planes, and so on down.
#include "ckpt/byte_planes.h"

#include <bit>
#include <cstring>

#include "base/check.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace keel {
namespace {

template <uint32_t kWidth>
struct NumberOf;
template <>
struct NumberOf<2> { using Type = uint16_t; };
template <>
struct NumberOf<4> { using Type = uint32_t; };
template <>
struct NumberOf<8> { using Type = uint64_t; };

template <uint32_t kWidth>
void SplitFrom(size_t first, const std::byte* numbers, size_t count, bool rotate,
               const PlanePointers& planes) {
  using Number = typename NumberOf<kWidth>::Type;
  for (size_t i = first; i < count; ++i) {
    Number number;
    std::memcpy(&number, numbers + i * kWidth, kWidth);
    if (rotate) number = std::rotl(number, 1);
    for (uint32_t p = 0; p < kWidth; ++p) {
      planes[p][i] = static_cast<std::byte>(number >> (8 * p) & 0xFF);
    }
  }
}

template <uint32_t kWidth>
void JoinFrom(size_t first, const ConstPlanePointers& planes, size_t count, bool rotate,
              std::byte* numbers) {
  using Number = typename NumberOf<kWidth>::Type;
  for (size_t i = first; i < count; ++i) {
    Number number = 0;
    for (uint32_t p = 0; p < kWidth; ++p) {
      number |= static_cast<Number>(std::to_integer<Number>(planes[p][i]) << (8 * p));
    }
    if (rotate) number = std::rotr(number, 1);
    std::memcpy(numbers + i * kWidth, &number, kWidth);
  }
}

#if defined(__SSE2__) || defined(__ARM_NEON)
#define KEEL_HAS_VECTORS 1
constexpr size_t kVectorBytes = 16;

#if defined(__SSE2__)
using Vector = __m128i;
Vector Load(const std::byte* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
void Store(std::byte* at, Vector v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(at), v); }
// The bytes at even places, and those at odd places, of the 32 bytes of a and b.
Vector Even(Vector a, Vector b) {
  const Vector low = _mm_set1_epi16(0xFF);
  return _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low));
}
Vector Odd(Vector a, Vector b) {
  return _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
}
// The reverse: the first and the second 16 bytes of even[0] odd[0] even[1] odd[1] ...
Vector ZipFirst(Vector even, Vector odd) { return _mm_unpacklo_epi8(even, odd); }
Vector ZipSecond(Vector even, Vector odd) { return _mm_unpackhi_epi8(even, odd); }
template <uint32_t kWidth>
Vector RotateLeft(Vector v) {
  if constexpr (kWidth == 2) return _mm_or_si128(_mm_slli_epi16(v, 1), _mm_srli_epi16(v, 15));
  if constexpr (kWidth == 4) return _mm_or_si128(_mm_slli_epi32(v, 1), _mm_srli_epi32(v, 31));
  if constexpr (kWidth == 8) return _mm_or_si128(_mm_slli_epi64(v, 1), _mm_srli_epi64(v, 63));
}
template <uint32_t kWidth>
Vector RotateRight(Vector v) {
  if constexpr (kWidth == 2) return _mm_or_si128(_mm_srli_epi16(v, 1), _mm_slli_epi16(v, 15));
  if constexpr (kWidth == 4) return _mm_or_si128(_mm_srli_epi32(v, 1), _mm_slli_epi32(v, 31));
  if constexpr (kWidth == 8) return _mm_or_si128(_mm_srli_epi64(v, 1), _mm_slli_epi64(v, 63));
}
#else
using Vector = uint8x16_t;
Vector Load(const std::byte* at) { return vld1q_u8(reinterpret_cast<const uint8_t*>(at)); }
void Store(std::byte* at, Vector v) { vst1q_u8(reinterpret_cast<uint8_t*>(at), v); }
Vector Even(Vector a, Vector b) { return vuzp1q_u8(a, b); }
Vector Odd(Vector a, Vector b) { return vuzp2q_u8(a, b); }
Vector ZipFirst(Vector even, Vector odd) { return vzip1q_u8(even, odd); }
Vector ZipSecond(Vector even, Vector odd) { return vzip2q_u8(even, odd); }
template <uint32_t kWidth>
Vector RotateLeft(Vector v) {
  if constexpr (kWidth == 2) {
    const uint16x8_t x = vreinterpretq_u16_u8(v);
    return vreinterpretq_u8_u16(vorrq_u16(vshlq_n_u16(x, 1), vshrq_n_u16(x, 15)));
  } else if constexpr (kWidth == 4) {
    const uint32x4_t x = vreinterpretq_u32_u8(v);
    return vreinterpretq_u8_u32(vorrq_u32(vshlq_n_u32(x, 1), vshrq_n_u32(x, 31)));
  } else {
    const uint64x2_t x = vreinterpretq_u64_u8(v);
    return vreinterpretq_u8_u64(vorrq_u64(vshlq_n_u64(x, 1), vshrq_n_u64(x, 63)));
  }
}
template <uint32_t kWidth>
Vector RotateRight(Vector v) {
  if constexpr (kWidth == 2) {
    const uint16x8_t x = vreinterpretq_u16_u8(v);
    return vreinterpretq_u8_u16(vorrq_u16(vshrq_n_u16(x, 1), vshlq_n_u16(x, 15)));
  } else if constexpr (kWidth == 4) {
    const uint32x4_t x = vreinterpretq_u32_u8(v);
    return vreinterpretq_u8_u32(vorrq_u32(vshrq_n_u32(x, 1), vshlq_n_u32(x, 31)));
  } else {
    const uint64x2_t x = vreinterpretq_u64_u8(v);
    return vreinterpretq_u8_u64(vorrq_u64(vshrq_n_u64(x, 1), vshlq_n_u64(x, 63)));
  }
}
#endif

// kWidth vectors of 16 numbers become kWidth planes of 16 bytes.
template <uint32_t kWidth>
inline void SplitBlock(const Vector* numbers, Vector* planes) {
  if constexpr (kWidth == 1) {
    planes[0] = numbers[0];
  } else {
    constexpr uint32_t kHalf = kWidth / 2;
    Vector even[kHalf], odd[kHalf], even_planes[kHalf], odd_planes[kHalf];
    for (uint32_t i = 0; i < kHalf; ++i) {
      even[i] = Even(numbers[2 * i], numbers[2 * i + 1]);
      odd[i] = Odd(numbers[2 * i], numbers[2 * i + 1]);
    }
    SplitBlock<kHalf>(even, even_planes);
    SplitBlock<kHalf>(odd, odd_planes);
    for (uint32_t i = 0; i < kHalf; ++i) {
      planes[2 * i] = even_planes[i];
      planes[2 * i + 1] = odd_planes[i];
    }
  }
}

template <uint32_t kWidth>
inline void JoinBlock(const Vector* planes, Vector* numbers) {
  if constexpr (kWidth == 1) {
    numbers[0] = planes[0];
  } else {
    constexpr uint32_t kHalf = kWidth / 2;
    Vector even[kHalf], odd[kHalf], even_planes[kHalf], odd_planes[kHalf];
    for (uint32_t i = 0; i < kHalf; ++i) {
      even_planes[i] = planes[2 * i];
      odd_planes[i] = planes[2 * i + 1];
    }
    JoinBlock<kHalf>(even_planes, even);
    JoinBlock<kHalf>(odd_planes, odd);
    for (uint32_t i = 0; i < kHalf; ++i) {
      numbers[2 * i] = ZipFirst(even[i], odd[i]);
      numbers[2 * i + 1] = ZipSecond(even[i], odd[i]);
    }
  }
}
#endif

template <uint32_t kWidth, bool kRotate>
void Split(const std::byte* numbers, size_t count, const PlanePointers& planes) {
  size_t i = 0;
#if KEEL_HAS_VECTORS
  for (; i + kVectorBytes <= count; i += kVectorBytes) {
    Vector in[kWidth], out[kWidth];
    for (uint32_t k = 0; k < kWidth; ++k) {
      in[k] = Load(numbers + i * kWidth + k * kVectorBytes);
      if constexpr (kRotate) in[k] = RotateLeft<kWidth>(in[k]);
    }
    SplitBlock<kWidth>(in, out);
    for (uint32_t p = 0; p < kWidth; ++p) Store(planes[p] + i, out[p]);
  }
#endif
  SplitFrom<kWidth>(i, numbers, count, kRotate, planes);
}

template <uint32_t kWidth, bool kRotate>
void Join(const ConstPlanePointers& planes, size_t count, std::byte* numbers) {
  size_t i = 0;
#if KEEL_HAS_VECTORS
  for (; i + kVectorBytes <= count; i += kVectorBytes) {
    Vector in[kWidth], out[kWidth];
    for (uint32_t p = 0; p < kWidth; ++p) in[p] = Load(planes[p] + i);
    JoinBlock<kWidth>(in, out);
    for (uint32_t k = 0; k < kWidth; ++k) {
      if constexpr (kRotate) out[k] = RotateRight<kWidth>(out[k]);
      Store(numbers + i * kWidth + k * kVectorBytes, out[k]);
    }
  }
#endif
  JoinFrom<kWidth>(i, planes, count, kRotate, numbers);
}

// Calls `run` with the width as a constant.
template <class Run>
void WithWidth(uint32_t width, Run&& run) {
  switch (width) {
    case 2: return run(std::integral_constant<uint32_t, 2>());
    case 4: return run(std::integral_constant<uint32_t, 4>());
    case 8: return run(std::integral_constant<uint32_t, 8>());
    default: KEEL_CHECK(false, "width " << width);
  }
}

}  // namespace

void SplitPlanes(const std::byte* numbers, size_t count, uint32_t width, bool rotate,
                 const PlanePointers& planes) {
  WithWidth(width, [&](auto constant) {
    constexpr uint32_t kWidth = decltype(constant)::value;
    if (rotate) {
      Split<kWidth, true>(numbers, count, planes);
    } else {
      Split<kWidth, false>(numbers, count, planes);
    }
  });
}

void JoinPlanes(const ConstPlanePointers& planes, size_t count, uint32_t width, bool rotate,
                std::byte* numbers) {
  WithWidth(width, [&](auto constant) {
    constexpr uint32_t kWidth = decltype(constant)::value;
    if (rotate) {
      Join<kWidth, true>(planes, count, numbers);
    } else {
      Join<kWidth, false>(planes, count, numbers);
    }
  });
}

void SplitPlanesPlain(const std::byte* numbers, size_t count, uint32_t width, bool rotate,
                      const PlanePointers& planes) {
  WithWidth(width, [&](auto constant) {
    SplitFrom<decltype(constant)::value>(0, numbers, count, rotate, planes);
  });
}

void JoinPlanesPlain(const ConstPlanePointers& planes, size_t count, uint32_t width, bool rotate,
                     std::byte* numbers) {
  WithWidth(width, [&](auto constant) {
    JoinFrom<decltype(constant)::value>(0, planes, count, rotate, numbers);
  });
}

}  // namespace keel
