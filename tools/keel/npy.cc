// The header, and the few dtypes that numpy lacks.
#include "tools/keel/npy.h"

#include <cstring>

#include "base/check.h"
#include "tools/keel/numbers.h"

namespace keel {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kBeforeDictionary = 10;  // magic, version, length

}  // namespace

bool IsNpyConverted(Dtype dtype) {
  return dtype == Dtype::kBf16 || dtype == Dtype::kF8E4M3 || dtype == Dtype::kF8E5M2;
}

std::string NpyTypeName(Dtype dtype) {
  if (IsNpyConverted(dtype)) dtype = Dtype::kF32;
  char kind = 'i';
  if (dtype == Dtype::kBool) kind = 'b';
  if (DtypeName(dtype).starts_with('u')) kind = 'u';
  if (IsFloat(LaneDtype(dtype))) kind = 'f';
  if (IsComplex(dtype)) kind = 'c';
  const uint32_t bytes = DtypeBytes(dtype);
  return (bytes == 1 ? "|" : "<") + std::string(1, kind) + std::to_string(bytes);
}

std::string NpyHeader(Dtype dtype, const std::vector<int64_t>& shape) {
  std::string sizes;
  for (const int64_t size : shape) sizes += std::to_string(size) + ", ";
  // Python writes a tuple of one as "(3,)".
  if (shape.size() == 1) sizes.pop_back();
  if (shape.size() > 1) sizes.erase(sizes.size() - 2);
  std::string dictionary = "{'descr': '" + NpyTypeName(dtype) +
                           "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  const size_t used = kBeforeDictionary + dictionary.size() + 1;
  dictionary.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  KEEL_CHECK(dictionary.size() <= UINT16_MAX, dictionary.size());
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

void AppendNpyValues(Dtype dtype, std::span<const std::byte> elements, std::string* to) {
  if (!IsNpyConverted(dtype)) {
    to->append(reinterpret_cast<const char*>(elements.data()), elements.size());
    return;
  }
  const size_t step = DtypeBytes(dtype);
  for (size_t at = 0; at < elements.size(); at += step) {
    uint32_t bits;
    if (dtype == Dtype::kBf16) {
      // By its bits, so that a NaN stays the one it is.
      uint16_t upper;
      std::memcpy(&upper, elements.data() + at, sizeof upper);
      bits = uint32_t{upper} << 16;
    } else {
      const auto number = static_cast<float>(NumberAt(dtype, elements.data() + at));
      std::memcpy(&bits, &number, sizeof bits);
    }
    to->append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
}

}  // namespace keel
