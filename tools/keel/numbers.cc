// Bits into numbers.
#include "tools/keel/numbers.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/json.h"

namespace keel {
namespace {

template <class T>
T Load(const std::byte* at) {
  T number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

float HalfToFloat(uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 0x3FF;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

// OCP's E4M3: no infinity, one NaN.
float E4M3ToFloat(uint8_t bits) {
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  const int exponent = bits >> 3 & 15;
  const int mantissa = bits & 7;
  if ((bits & 0x7F) == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(mantissa + 8), exponent - 10);
}

float SmallFloat(Dtype lane, const std::byte* at) {
  switch (lane) {
    case Dtype::kF8E4M3: return E4M3ToFloat(Load<uint8_t>(at));
    case Dtype::kF8E5M2: return HalfToFloat(static_cast<uint16_t>(Load<uint8_t>(at) << 8));
    case Dtype::kF16: return HalfToFloat(Load<uint16_t>(at));
    case Dtype::kBf16: return std::bit_cast<float>(uint32_t{Load<uint16_t>(at)} << 16);
    default: return Load<float>(at);
  }
}

template <class T>
std::string Digits(T number) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

std::string FloatText(Dtype lane, const std::byte* at) {
  const double number = NumberAt(lane, at);
  if (std::isnan(number)) return "nan";  // whatever its sign bit
  return lane == Dtype::kF64 ? Digits(number) : Digits(static_cast<float>(number));
}

}  // namespace

Dtype LaneDtype(Dtype dtype) {
  if (dtype == Dtype::kC64) return Dtype::kF32;
  return dtype == Dtype::kC128 ? Dtype::kF64 : dtype;
}

bool IsComplex(Dtype dtype) { return LaneDtype(dtype) != dtype; }

bool IsFloat(Dtype lane) {
  return LaneWidth(lane) > 1 || lane == Dtype::kF8E4M3 || lane == Dtype::kF8E5M2;
}

double NumberAt(Dtype lane, const std::byte* at) {
  switch (lane) {
    case Dtype::kBool:
    case Dtype::kU8: return Load<uint8_t>(at);
    case Dtype::kI8: return Load<int8_t>(at);
    case Dtype::kU16: return Load<uint16_t>(at);
    case Dtype::kI16: return Load<int16_t>(at);
    case Dtype::kU32: return Load<uint32_t>(at);
    case Dtype::kI32: return Load<int32_t>(at);
    case Dtype::kU64: return static_cast<double>(Load<uint64_t>(at));
    case Dtype::kI64: return static_cast<double>(Load<int64_t>(at));
    case Dtype::kF64: return Load<double>(at);
    default: return SmallFloat(lane, at);
  }
}

std::string ElementText(Dtype dtype, const std::byte* at) {
  switch (dtype) {
    case Dtype::kBool: return Load<uint8_t>(at) != 0 ? "true" : "false";
    case Dtype::kU64: return Digits(Load<uint64_t>(at));
    case Dtype::kI64: return Digits(Load<int64_t>(at));
    case Dtype::kC64:
    case Dtype::kC128: {
      const Dtype lane = LaneDtype(dtype);
      const std::string imaginary = FloatText(lane, at + DtypeBytes(lane));
      return FloatText(lane, at) + (imaginary.starts_with('-') ? "" : "+") + imaginary + "i";
    }
    default: break;
  }
  if (IsFloat(dtype)) return FloatText(dtype, at);
  return Digits(static_cast<int64_t>(NumberAt(dtype, at)));
}

Json RealJson(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  return number;
}

}  // namespace keel
