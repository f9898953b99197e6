// The names of precisions.
#include "trainer/precision.h"

#include <array>
#include <string>
#include <utility>

#include "base/text.h"

namespace keel {
namespace {

constexpr std::array<std::pair<Precision, std::string_view>, 3> kNames = {{
    {Precision::kFp32, "fp32"}, {Precision::kBf16, "bf16"}, {Precision::kFp16, "fp16"}}};

}  // namespace

std::string_view PrecisionName(Precision precision) {
  return kNames[static_cast<size_t>(precision)].second;
}

Result<Precision> ParsePrecision(std::string_view name) {
  for (const auto& [precision, known] : kNames) {
    if (name == known) return precision;
  }
  return Error{Code::kInvalid,
               "unknown precision " + Shown(name) + ": use fp32, bf16 or fp16"};
}

}  // namespace keel
