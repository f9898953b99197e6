// Dtype: the type of a tensor's elements, as far as a checkpoint cares: its name, size and lanes.
// Threads    any.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace keel {

enum class Dtype : uint8_t {
  kBool, kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64,
  kF8E4M3, kF8E5M2, kF16, kBf16, kF32, kF64, kC64, kC128,
};

// "f32", "bf16", "i64", "bool", "c64" (two f32) ...: the names in manifests.
std::string_view DtypeName(Dtype dtype);
// kInvalid: no such name.
Result<Dtype> ParseDtype(std::string_view name);
std::span<const Dtype> AllDtypes();

uint32_t DtypeBytes(Dtype dtype);
// The width of the numbers that the planes codec takes apart: 2, 4 or 8 for floats (a complex
// number is two of them); 1 for all types that it leaves to zstd.
uint32_t LaneWidth(Dtype dtype);

}  // namespace keel
