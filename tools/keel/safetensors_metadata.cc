// Typed values to texts and back.
#include "tools/keel/safetensors_metadata.h"

#include "base/json.h"
#include "base/text.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

constexpr std::string_view kOurs = "keel.";
constexpr std::string_view kStep = "keel.step";
constexpr std::string_view kMetadata = "keel.metadata.";
constexpr std::string_view kUser = "keel.user.";
// Loaders of Hugging Face refuse a file with texts that does not say whose tensors it has.
constexpr std::string_view kFormat = "format";
constexpr std::string_view kPyTorch = "pt";
constexpr std::string_view kAdded = "keel.added";  // the text that the checkpoint has not

Status ReadOne(const std::string& name, const std::string& text, Description* to) {
  if (name.starts_with(kMetadata)) {
    const std::string field = name.substr(kMetadata.size());
    KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
    KEEL_TRY_ASSIGN(to->metadata[field], MetadataFromJson(field, json));
  } else if (name == kStep) {
    KEEL_TRY_ASSIGN(const int64_t step, ParseInteger(text));
    if (step < 0) return Error{Code::kInvalid, text + " is not a step"};
    to->step = static_cast<uint64_t>(step);
  } else if (name == kAdded) {
    // See FromSafetensorsMetadata().
  } else if (name.starts_with(kUser) && name.substr(kUser.size()).starts_with(kOurs)) {
    to->user[name.substr(kUser.size())] = text;
  } else {
    to->user[name] = text;
  }
  return Ok();
}

}  // namespace

std::map<std::string, std::string> ToSafetensorsMetadata(const Description& description) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : description.user) {
    texts[name.starts_with(kOurs) ? std::string(kUser) + name : name] = text;
  }
  const Json metadata = MetadataJson(description.metadata);
  for (const auto& [name, value] : metadata.items()) {
    texts[std::string(kMetadata) + name] = DumpJson(value);
  }
  texts[std::string(kStep)] = std::to_string(description.step);
  if (texts.emplace(kFormat, kPyTorch).second) texts[std::string(kAdded)] = kFormat;
  return texts;
}

Status FromSafetensorsMetadata(const std::map<std::string, std::string>& texts,
                               Description* description) {
  for (const auto& [name, text] : texts) {
    const Status read = ReadOne(name, text, description);
    if (!read.ok()) return read.error().Doing("__metadata__ " + Shown(name));
  }
  const auto added = texts.find(std::string(kAdded));
  if (added != texts.end() && added->second == kFormat) {
    description->user.erase(std::string(kFormat));
  }
  return Ok();
}

}  // namespace keel
