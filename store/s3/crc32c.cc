// Eight tables, or SSE4.2's instruction over three streams: one alone waits for its own result.
#include "store/s3/crc32c.h"

#include <array>
#include <cstring>

#include "base/base64.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace keel {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables kTables = [] {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? kPolynomial : 0);
    tables[0][i] = sum;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t k = 1; k < 8; ++k) {
      const uint32_t before = tables[k - 1][i];
      tables[k][i] = before >> 8 ^ tables[0][before & 255];
    }
  }
  return tables;
}();

uint64_t EightAt(const std::byte* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint32_t AddByte(uint32_t sum, std::byte byte) {
  return sum >> 8 ^ kTables[0][(sum ^ static_cast<uint32_t>(byte)) & 255];
}

#if defined(__x86_64__)

// Bytes of each of the three streams in one round.
constexpr size_t kStream = 4096;

// What zero bytes make of a sum whose only bit is `i`: sums are linear in their bits.
using Shift = std::array<uint32_t, 32>;

constexpr uint32_t Shifted(const Shift& shift, uint32_t sum) {
  uint32_t moved = 0;
  for (size_t bit = 0; bit < 32; ++bit) moved ^= (sum >> bit & 1) != 0 ? shift[bit] : 0;
  return moved;
}

// Over kStream of them: from over one of them, by going over twice as many again and again.
constexpr Shift kOverStream = [] {
  Shift shift{};
  for (size_t bit = 0; bit < 32; ++bit) {
    const uint32_t sum = 1U << bit;
    shift[bit] = sum >> 8 ^ kTables[0][sum & 255];
  }
  for (size_t bytes = 1; bytes < kStream; bytes *= 2) {
    const Shift once = shift;
    for (size_t bit = 0; bit < 32; ++bit) shift[bit] = Shifted(once, once[bit]);
  }
  return shift;
}();
static_assert((kStream & (kStream - 1)) == 0);

uint32_t OverStream(uint32_t sum) { return Shifted(kOverStream, sum); }

__attribute__((target("sse4.2"))) uint32_t ByInstruction(std::span<const std::byte> bytes) {
  uint64_t sum = 0xffffffff;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kStream; at += 3 * kStream, left -= 3 * kStream) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      sum = _mm_crc32_u64(sum, EightAt(at + i));
      second = _mm_crc32_u64(second, EightAt(at + kStream + i));
      third = _mm_crc32_u64(third, EightAt(at + 2 * kStream + i));
    }
    sum = OverStream(static_cast<uint32_t>(sum)) ^ second;
    sum = OverStream(static_cast<uint32_t>(sum)) ^ third;
  }
  for (; left >= 8; at += 8, left -= 8) sum = _mm_crc32_u64(sum, EightAt(at));
  for (; left > 0; ++at, --left) {
    sum = _mm_crc32_u8(static_cast<uint32_t>(sum), static_cast<unsigned char>(*at));
  }
  return ~static_cast<uint32_t>(sum);
}

#endif

}  // namespace

uint32_t Crc32cByTable(std::span<const std::byte> bytes) {
  uint32_t sum = 0xffffffff;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    for (size_t i = 0; i < 4; ++i) sum ^= static_cast<uint32_t>(at[i]) << (8 * i);
    uint32_t next = 0;
    for (size_t i = 0; i < 4; ++i) {
      next ^= kTables[7 - i][sum >> (8 * i) & 255] ^ kTables[3 - i][static_cast<size_t>(at[4 + i])];
    }
    sum = next;
  }
  for (; left > 0; ++at, --left) sum = AddByte(sum, *at);
  return ~sum;
}

uint32_t Crc32cOf(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ByInstruction(bytes);
#endif
  return Crc32cByTable(bytes);
}

std::string Crc32cBase64(std::span<const std::byte> bytes) {
  const uint32_t sum = Crc32cOf(bytes);
  std::string four;
  for (int shift = 24; shift >= 0; shift -= 8) four += static_cast<char>(sum >> shift & 255);
  return Base64Of(four);
}

}  // namespace keel
