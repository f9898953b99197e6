// Turns descriptions into JSON and back.
#include "ckpt/description.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "ckpt/names.h"

namespace keel {
namespace {

Error Wrong(const std::string& what) { return {Code::kInvalid, what}; }

// Checks that JSON gives the text back unchanged.
Status CheckText(const std::string& what, const std::string& text) {
  const auto read = ParseJson(DumpJson(Json(text)));
  if (read.ok() && *read == Json(text)) return Ok();
  return Wrong(what + " " + Shown(text) + " is not UTF-8");
}

Status CheckStep(uint64_t step) {
  if (step <= kStepMax) return Ok();
  return Wrong("step " + std::to_string(step) + " is beyond " + std::to_string(kStepMax));
}

Json ToJson(const MetadataValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Status OnlyMembers(const std::string& what, const Json& json,
                   const std::vector<std::string>& known) {
  for (const auto& [name, value] : json.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Wrong(what + ": unknown member " + Shown(name));
    }
  }
  return Ok();
}

Result<Layout> ReadLayout(const Json& json, uint64_t frame_bytes) {
  if (frame_bytes > kFrameBytesMax) return Wrong("frames of " + std::to_string(frame_bytes));
  KEEL_TRY_ASSIGN(const Json* const tensors, ArrayField(json, "tensors"));
  std::vector<TensorSpec> specs;
  for (const Json& tensor : *tensors) {
    if (!tensor.is_object()) return Wrong("a tensor that is no object");
    TensorSpec spec;
    KEEL_TRY_ASSIGN(spec.name, Field<std::string>(tensor, "name"));
    const std::string what = "tensor " + Shown(spec.name);
    KEEL_TRY(OnlyMembers(what, tensor, {"name", "dtype", "shape", "offset", "bytes", "digest"}));
    KEEL_TRY_ASSIGN(const std::string dtype, Field<std::string>(tensor, "dtype"));
    const auto parsed = ParseDtype(dtype);
    if (!parsed.ok()) return parsed.error().Doing(what);
    spec.dtype = *parsed;
    KEEL_TRY_ASSIGN(spec.shape, Field<std::vector<int64_t>>(tensor, "shape"));
    specs.push_back(std::move(spec));
  }
  KEEL_TRY_ASSIGN(Layout layout,
                  Layout::Make(std::move(specs), static_cast<uint32_t>(frame_bytes)));
  // A tensor's place follows from the list; it is written down for other readers.
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const PlacedTensor& placed = layout.tensors()[i];
    KEEL_TRY_ASSIGN(const auto offset, Field<uint64_t>((*tensors)[i], "offset"));
    KEEL_TRY_ASSIGN(const auto bytes, Field<uint64_t>((*tensors)[i], "bytes"));
    if (offset != placed.offset || bytes != placed.bytes) {
      return Wrong("tensor " + Shown(placed.spec.name) + ": " + std::to_string(bytes) +
                   " bytes at " + std::to_string(offset) + ", but its place is " +
                   std::to_string(placed.bytes) + " at " + std::to_string(placed.offset));
    }
  }
  return layout;
}

Status CheckVersion(const Json& json) {
  KEEL_TRY_ASSIGN(const std::string format, Field<std::string>(json, "format"));
  if (format != kManifestFormat) return Wrong("format " + Shown(format) + " is not ours");
  KEEL_TRY_ASSIGN(const auto version, Field<uint64_t>(json, "version"));
  if (version == kFormatVersion) return Ok();
  return Wrong("it has format version " + std::to_string(version) + ", this program reads " +
               std::to_string(kFormatVersion) + ": use a newer Evenkeel");
}

const std::vector<std::string>& DescriptionMembers() {
  static const std::vector<std::string> members = {
      "format", "version", "step",     "attempt", "writer",
      "codec",  "frame_bytes", "metadata", "user",    "tensors"};
  return members;
}

}  // namespace

Result<MetadataValue> MetadataFromJson(const std::string& name, const Json& json) {
  if (json.is_boolean()) return MetadataValue(json.get<bool>());
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    if (number <= INT64_MAX) return MetadataValue(static_cast<int64_t>(number));
    return MetadataValue(number);
  }
  if (json.is_number_integer()) return MetadataValue(json.get<int64_t>());
  if (json.is_number_float()) return MetadataValue(json.get<double>());
  if (json.is_string()) return MetadataValue(json.get<std::string>());
  return Wrong("metadata " + Shown(name) + ": expected a number, a text, true or false");
}

std::string MetadataText(const MetadataValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return DumpJson(ToJson(value));
}

std::string_view WriterVersion() {
  static const std::string text = "evenkeel " + std::string(kVersion);
  return text;
}

Status CheckDescription(const Description& description) {
  KEEL_TRY(CheckStep(description.step));
  KEEL_TRY(CheckText("writer", description.writer));
  for (const auto& [name, value] : description.metadata) {
    KEEL_TRY(CheckText("metadata name", name));
    const auto* number = std::get_if<double>(&value);
    if (number != nullptr && !std::isfinite(*number)) {
      return Wrong("metadata " + Shown(name) + " is not finite: store it as text");
    }
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr) KEEL_TRY(CheckText("metadata " + Shown(name), *text));
  }
  for (const auto& [name, value] : description.user) {
    KEEL_TRY(CheckText("user key", name));
    KEEL_TRY(CheckText("user value of " + Shown(name), value));
  }
  return Ok();
}

Json DescriptionJson(const Description& description, std::string_view attempt) {
  Json metadata = Json::object();
  for (const auto& [name, value] : description.metadata) {
    AppendMember(&metadata, name, ToJson(value));
  }
  Json user = Json::object();
  for (const auto& [name, value] : description.user) AppendMember(&user, name, value);
  return {{"format", kManifestFormat},
          {"version", kFormatVersion},
          {"step", description.step},
          {"attempt", attempt},
          {"writer", description.writer},
          {"codec", CodecName(description.codec)},
          {"frame_bytes", description.layout.frame_bytes()},
          {"metadata", std::move(metadata)},
          {"user", std::move(user)}};
}

Json TensorJson(const PlacedTensor& tensor) {
  return {{"name", tensor.spec.name},
          {"dtype", DtypeName(tensor.spec.dtype)},
          {"shape", Json(tensor.spec.shape)},
          {"offset", tensor.offset},
          {"bytes", tensor.bytes}};
}

std::string DescriptionText(const Description& description, std::string_view attempt) {
  Json json = DescriptionJson(description, attempt);
  Json tensors = Json::array();
  for (const PlacedTensor& tensor : description.layout.tensors()) {
    tensors.push_back(TensorJson(tensor));
  }
  json["tensors"] = std::move(tensors);
  return DumpJson(json);
}

Result<ParsedDescription> ParseDescriptionText(std::string_view text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  return ReadDescription(json, {});
}

Result<ParsedDescription> ReadDescription(const Json& json, const std::vector<std::string>& more) {
  KEEL_TRY(CheckVersion(json));
  std::vector<std::string> known = DescriptionMembers();
  known.insert(known.end(), more.begin(), more.end());
  KEEL_TRY(OnlyMembers("the top level", json, known));
  ParsedDescription parsed;
  Description& description = parsed.description;
  KEEL_TRY_ASSIGN(description.step, Field<uint64_t>(json, "step"));
  KEEL_TRY(CheckStep(description.step));
  KEEL_TRY_ASSIGN(parsed.attempt, Field<std::string>(json, "attempt"));
  KEEL_TRY(CheckAttempt(parsed.attempt));
  KEEL_TRY_ASSIGN(description.writer, Field<std::string>(json, "writer"));
  KEEL_TRY_ASSIGN(const std::string codec, Field<std::string>(json, "codec"));
  KEEL_TRY_ASSIGN(description.codec, ParseCodec(codec));
  KEEL_TRY_ASSIGN(const Json* const metadata, ObjectField(json, "metadata"));
  for (const auto& [name, value] : metadata->items()) {
    KEEL_TRY_ASSIGN(description.metadata[name], MetadataFromJson(name, value));
  }
  KEEL_TRY_ASSIGN(const Json* const user, ObjectField(json, "user"));
  for (const auto& [name, value] : user->items()) {
    if (!value.is_string()) return Wrong("user value of " + Shown(name) + " is no text");
    description.user[name] = value.get<std::string>();
  }
  KEEL_TRY_ASSIGN(const auto frame_bytes, Field<uint64_t>(json, "frame_bytes"));
  KEEL_TRY_ASSIGN(description.layout, ReadLayout(json, frame_bytes));
  return parsed;
}

}  // namespace keel
