// Samples numbers, and computes order-0 entropy in fixed point.
#include "ckpt/plane_choice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ckpt/format.h"

namespace keel {
namespace {

constexpr size_t kRuns = 16;
constexpr size_t kRunLength = 64;
constexpr size_t kSamplesMax = kRuns * kRunLength;

// Bits of entropy are counted in units of 2^-16.
constexpr int64_t kBit = 1 << 16;
constexpr int64_t kUnseenSymbol = 47186;      // 0.72 bit, which each symbol adds to the guess
constexpr int64_t kCodedBelow = 498074;       // 7.6 bits
constexpr int64_t kRunsBelow = kBit;          // 1.0
constexpr int64_t kRotationGain = 655;        // 0.01

// log2(number) in units of kBit, by squaring the mantissa once for each bit of the result.
constexpr int64_t Log2(uint64_t number) {
  const int whole = std::bit_width(number) - 1;
  uint64_t mantissa = (number << 31) >> whole;  // 1.0 <= m < 2.0, in units of 2^-31
  int64_t result = whole;
  for (int i = 0; i < 16; ++i) {
    mantissa = (mantissa * mantissa) >> 31;
    result *= 2;
    if (mantissa >> 32) {
      mantissa >>= 1;
      ++result;
    }
  }
  return result;
}

// n * log2(n).
constexpr auto kNLogN = [] {
  std::array<int64_t, kSamplesMax + 1> table{};
  for (uint64_t n = 2; n < table.size(); ++n) table[n] = static_cast<int64_t>(n) * Log2(n);
  return table;
}();

using Histogram = std::array<uint16_t, 256>;

// Entropy times the number of samples: what an order-0 coder would need, estimated from a sample.
int64_t Cost(const Histogram& histogram, size_t samples) {
  int64_t cost = kNLogN[samples];
  int64_t symbols = 0;
  for (const uint16_t count : histogram) {
    cost -= kNLogN[count];
    symbols += count != 0;
  }
  return cost + kUnseenSymbol * (symbols - 1);
}

struct Samples {
  std::array<uint64_t, kSamplesMax> numbers;
  size_t count = 0;
};

void Take(const std::byte* numbers, size_t first, size_t count, uint32_t width, Samples* samples) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t number = 0;
    std::memcpy(&number, numbers + (first + i) * width, width);
    samples->numbers[samples->count++] = number;
  }
}

Samples Sample(const std::byte* numbers, size_t count, uint32_t width) {
  Samples samples;
  if (count <= kSamplesMax) {
    Take(numbers, 0, count, width, &samples);
    return samples;
  }
  for (size_t run = 0; run < kRuns; ++run) {
    Take(numbers, run * (count - kRunLength) / (kRuns - 1), kRunLength, width, &samples);
  }
  return samples;
}

Histogram Count(const Samples& samples, uint32_t width, bool rotate, uint32_t plane) {
  Histogram histogram{};
  const uint32_t shift = 8 * plane;
  const uint32_t sign = 8 * width - 1;
  for (size_t i = 0; i < samples.count; ++i) {
    uint64_t number = samples.numbers[i];
    if (rotate) number = number << 1 | number >> sign;
    ++histogram[number >> shift & 0xFF];
  }
  return histogram;
}

}  // namespace

PlaneChoice ChoosePlanes(const std::byte* numbers, size_t count, uint32_t width) {
  PlaneChoice choice;
  if (count == 0) return choice;
  const Samples samples = Sample(numbers, count, width);
  const auto scale = static_cast<int64_t>(samples.count);
  const auto cost = [&](bool rotate, uint32_t plane) {
    return Cost(Count(samples, width, rotate, plane), samples.count);
  };
  const uint32_t top = width - 1;
  choice.rotate = cost(true, top) < cost(false, top) - kRotationGain * scale;
  for (uint32_t plane = 0; plane < width; ++plane) {
    const int64_t needed = cost(choice.rotate, plane);
    if (needed < kCodedBelow * scale) choice.coded |= static_cast<uint8_t>(1 << plane);
    if (needed < kRunsBelow * scale) choice.seek_runs |= static_cast<uint8_t>(1 << plane);
  }
  return choice;
}

}  // namespace keel
