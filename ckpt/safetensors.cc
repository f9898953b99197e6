// Turns headers of safetensors files into JSON and back.
#include "ckpt/safetensors.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "ckpt/error_list.h"
#include "ckpt/wire.h"

namespace keel {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";

struct Row {
  std::string_view name;
  std::optional<Dtype> dtype;  // empty: a checkpoint cannot hold it
};

// In the reference's order, by which its writer sorts.
constexpr Row kRows[] = {
    {"BOOL", Dtype::kBool},       {"F4", std::nullopt},          {"F6_E2M3", std::nullopt},
    {"F6_E3M2", std::nullopt},    {"U8", Dtype::kU8},            {"I8", Dtype::kI8},
    {"F8_E5M2", Dtype::kF8E5M2},  {"F8_E4M3", Dtype::kF8E4M3},   {"F8_E8M0", std::nullopt},
    {"F8_E4M3FNUZ", std::nullopt}, {"F8_E5M2FNUZ", std::nullopt}, {"I16", Dtype::kI16},
    {"U16", Dtype::kU16},         {"F16", Dtype::kF16},          {"BF16", Dtype::kBf16},
    {"I32", Dtype::kI32},         {"U32", Dtype::kU32},          {"F32", Dtype::kF32},
    {"C64", Dtype::kC64},         {"F64", Dtype::kF64},          {"I64", Dtype::kI64},
    {"U64", Dtype::kU64},
};

// Null: the format has no such type.
const Row* RowOf(Dtype dtype) {
  const Row* const found = std::find_if(std::begin(kRows), std::end(kRows),
                                        [&](const Row& row) { return row.dtype == dtype; });
  return found == std::end(kRows) ? nullptr : found;
}

Error Corrupt(const std::string& what) { return {Code::kCorrupt, what}; }

Result<Dtype> ParseTheirDtype(const std::string& name) {
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    if (row.dtype.has_value()) return *row.dtype;
    return Error{Code::kInvalid, "its dtype " + name + " is one that checkpoints cannot hold"};
  }
  return Error{Code::kInvalid,
               Shown(name) + " is not a dtype of safetensors that this version knows"};
}

// Multiplies in 64 bits and from left to right, as the reference does: a later 0 does not excuse an
// earlier overflow.
std::optional<uint64_t> BytesOfShape(Dtype dtype, const std::vector<int64_t>& shape) {
  uint64_t product = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(size), &product)) {
      return std::nullopt;
    }
  }
  if (__builtin_mul_overflow(product, uint64_t{DtypeBytes(dtype)}, &product)) return std::nullopt;
  return product;
}

// A tensor's entry as it is written.
struct Entry {
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> offsets;
};

Result<Entry> ParseEntry(const Json& json) {
  Entry entry;
  KEEL_TRY_ASSIGN(entry.dtype, Field<std::string>(json, "dtype"));
  KEEL_TRY_ASSIGN(entry.shape, Field<std::vector<int64_t>>(json, "shape"));
  KEEL_TRY_ASSIGN(entry.offsets, Field<std::vector<int64_t>>(json, "data_offsets"));
  const auto& offsets = entry.offsets;
  if (offsets.size() == 2 && offsets[0] >= 0 && offsets[0] <= offsets[1]) return entry;
  return Corrupt("its data_offsets are no begin and end");
}

Result<SafetensorsTensor> ParseTensor(const std::string& name, const Json& json) {
  const Result<Entry> entry = ParseEntry(json);
  if (!entry.ok()) return Corrupt(entry.error().message);
  KEEL_TRY_ASSIGN(const Dtype dtype, ParseTheirDtype(entry->dtype));
  SafetensorsTensor tensor{{name, dtype, entry->shape},
                           static_cast<uint64_t>(entry->offsets[0]),
                           static_cast<uint64_t>(entry->offsets[1] - entry->offsets[0])};
  const auto bytes = BytesOfShape(dtype, entry->shape);
  if (!bytes.has_value()) return Corrupt("no tensor can have its shape");
  if (*bytes == tensor.bytes) return tensor;
  return Corrupt(TypeText(tensor.spec) + " takes " + std::to_string(*bytes) +
                 " bytes, its data_offsets " + ShapeText(entry->offsets) + " are for " +
                 std::to_string(tensor.bytes));
}

Result<std::map<std::string, std::string>> ParseMetadata(const Json& json) {
  std::map<std::string, std::string> metadata;
  if (json.is_null()) return metadata;
  if (!json.is_object()) return Corrupt("it is no object");
  for (const auto& [name, value] : json.get_ref<const Json::object_t&>()) {
    if (!value.is_string()) return Corrupt("the value of " + Shown(name) + " is no text");
    metadata.emplace(name, value.get_ref<const std::string&>());
  }
  return metadata;
}

// Sorted tensors must fill the data, one after the other.
Status CheckCoverage(const std::vector<SafetensorsTensor>& tensors, uint64_t data_bytes) {
  uint64_t at = 0;
  const std::string* before = nullptr;
  for (const SafetensorsTensor& tensor : tensors) {
    const std::string begins = "tensor " + Shown(tensor.spec.name) + " begins at byte " +
                               std::to_string(tensor.begin) + " of the data";
    if (tensor.begin < at) return Corrupt(begins + ", inside tensor " + Shown(*before));
    if (tensor.begin > at) {
      return Corrupt(begins + ", but byte " + std::to_string(at) + " belongs to no tensor");
    }
    at = tensor.begin + tensor.bytes;
    before = &tensor.spec.name;
  }
  if (at == data_bytes) return Ok();
  return Corrupt("its tensors take " + std::to_string(at) + " bytes of data, but the file has " +
                 std::to_string(data_bytes) +
                 (at > data_bytes ? ": it is cut short" : ": some belong to no tensor"));
}

Json TensorEntry(const SafetensorsTensor& tensor) {
  return {{"dtype", RowOf(tensor.spec.dtype)->name},
          {"shape", Json(tensor.spec.shape)},
          {"data_offsets", {tensor.begin, tensor.begin + tensor.bytes}}};
}

Status CheckTheirs(const std::vector<TensorSpec>& tensors) {
  ErrorList errors;
  std::set<std::string_view> names;
  for (const TensorSpec& spec : tensors) {
    const auto refuse = [&](const std::string& why) {
      errors.Add(Code::kInvalid, "tensor " + Shown(spec.name) + ": " + why);
    };
    if (RowOf(spec.dtype) == nullptr) {
      refuse("safetensors has no " + std::string(DtypeName(spec.dtype)) + "; leave it out");
    }
    if (ContentBytes(spec).ok() && !BytesOfShape(spec.dtype, spec.shape).has_value()) {
      refuse("no reader of safetensors takes the shape " + ShapeText(spec.shape) +
             ", whose sizes overflow 64 bits before they come to a 0; leave it out");
    }
    if (spec.name == kMetadataName) refuse("safetensors keeps that name for itself; rename it");
    if (!names.insert(spec.name).second) refuse("it is there twice");
  }
  return errors.ToStatus("making safetensors");
}

}  // namespace

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text, uint64_t data_bytes) {
  if (!text.starts_with('{')) return Corrupt("the header does not begin with '{'");
  const Result<Json> json = ParseJson(text);
  if (!json.ok()) return Corrupt(json.error().message);
  SafetensorsHeader header;
  for (const auto& [name, value] : json->get_ref<const Json::object_t&>()) {
    if (name == kMetadataName) {
      auto metadata = ParseMetadata(value);
      if (!metadata.ok()) return metadata.error().Doing(std::string(kMetadataName));
      header.metadata = *std::move(metadata);
      continue;
    }
    auto tensor = ParseTensor(name, value);
    if (!tensor.ok()) return tensor.error().Doing("tensor " + Shown(name));
    header.tensors.push_back(*std::move(tensor));
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
                     return std::tie(a.begin, a.bytes) < std::tie(b.begin, b.bytes);
                   });
  KEEL_TRY(CheckCoverage(header.tensors, data_bytes));
  return header;
}

Result<SafetensorsHeader> MakeSafetensorsHeader(std::vector<TensorSpec> tensors,
                                                std::map<std::string, std::string> metadata) {
  KEEL_TRY(CheckTheirs(tensors));
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    const Row* const row_a = RowOf(a.dtype);
    const Row* const row_b = RowOf(b.dtype);
    return row_a != row_b ? row_a > row_b : a.name < b.name;
  });
  SafetensorsHeader header{.metadata = std::move(metadata), .tensors = {}};
  for (TensorSpec& spec : tensors) {
    KEEL_TRY_ASSIGN(const uint64_t bytes, ContentBytes(spec));
    header.tensors.push_back({std::move(spec), header.data_bytes(), bytes});
  }
  return header;
}

Result<std::string> SafetensorsHead(const SafetensorsHeader& header) {
  Json json = Json::object();
  auto& members = json.get_ref<Json::object_t&>();
  if (!header.metadata.empty()) {
    Json metadata = Json::object();
    for (const auto& [name, text] : header.metadata) AppendMember(&metadata, name, text);
    members.emplace_back(kMetadataName, std::move(metadata));
  }
  for (const SafetensorsTensor& tensor : header.tensors) {
    members.emplace_back(tensor.spec.name, TensorEntry(tensor));
  }
  std::string text = DumpJson(json);
  text.resize((text.size() + kSafetensorsHeaderAlignment - 1) / kSafetensorsHeaderAlignment *
                  kSafetensorsHeaderAlignment,
              ' ');
  if (text.size() > kSafetensorsHeaderBytesMax) {
    return Error{Code::kInvalid, "its header would have " + std::to_string(text.size()) +
                                     " bytes; readers of safetensors take 100 MB at most"};
  }
  std::string head(kSafetensorsLengthBytes, '\0');
  WireWriter(std::as_writable_bytes(std::span(head))).Put(uint64_t{text.size()});
  return head + text;
}

}  // namespace keel
