// One table of all dtypes.
#include "ckpt/dtype.h"

#include <array>
#include <string>

#include "base/check.h"
#include "base/text.h"

namespace keel {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  uint32_t bytes;
  uint32_t lane;
};

constexpr Row kRows[] = {
    {Dtype::kBool, "bool", 1, 1},      {Dtype::kU8, "u8", 1, 1},
    {Dtype::kI8, "i8", 1, 1},          {Dtype::kU16, "u16", 2, 1},
    {Dtype::kI16, "i16", 2, 1},        {Dtype::kU32, "u32", 4, 1},
    {Dtype::kI32, "i32", 4, 1},        {Dtype::kU64, "u64", 8, 1},
    {Dtype::kI64, "i64", 8, 1},        {Dtype::kF8E4M3, "f8_e4m3", 1, 1},
    {Dtype::kF8E5M2, "f8_e5m2", 1, 1}, {Dtype::kF16, "f16", 2, 2},
    {Dtype::kBf16, "bf16", 2, 2},      {Dtype::kF32, "f32", 4, 4},
    {Dtype::kF64, "f64", 8, 8},        {Dtype::kC64, "c64", 8, 4},
    {Dtype::kC128, "c128", 16, 8},
};

const Row& RowOf(Dtype dtype) {
  const auto index = static_cast<size_t>(dtype);
  KEEL_CHECK(index < std::size(kRows) && kRows[index].dtype == dtype, "dtype " << index);
  return kRows[index];
}

}  // namespace

std::string_view DtypeName(Dtype dtype) { return RowOf(dtype).name; }
uint32_t DtypeBytes(Dtype dtype) { return RowOf(dtype).bytes; }
uint32_t LaneWidth(Dtype dtype) { return RowOf(dtype).lane; }

Result<Dtype> ParseDtype(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return Error{Code::kInvalid, Shown(name) + " is not a dtype that this version knows"};
}

std::span<const Dtype> AllDtypes() {
  static const auto all = [] {
    std::array<Dtype, std::size(kRows)> dtypes;
    for (size_t i = 0; i < dtypes.size(); ++i) dtypes[i] = kRows[i].dtype;
    return dtypes;
  }();
  return all;
}

}  // namespace keel
