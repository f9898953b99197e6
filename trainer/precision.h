// Precision: the type in which forward computes; parameters and their updates keep the model's
// type. It is free of LibTorch, for options and fingerprints; AutocastScope
// (trainer/numerics/autocast.h) applies it.
// Threads    any. Errors: kInvalid.
#pragma once

#include <string_view>

#include "base/result.h"

namespace keel {

enum class Precision { kFp32, kBf16, kFp16 };
std::string_view PrecisionName(Precision precision);  // "fp32", "bf16", "fp16"
Result<Precision> ParsePrecision(std::string_view name);

}  // namespace keel
