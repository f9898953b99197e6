// Description: what a checkpoint says about itself, besides where its bytes are.
// Promises   the same description gives the same text, and the text gives the same description;
//            parsing is strict: an unknown, missing or repeated member is an error.
// Threads    a plain value. Errors: kInvalid (naming the member), and for a newer format version.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "base/json_fwd.h"
#include "base/result.h"
#include "ckpt/frame.h"
#include "ckpt/layout.h"

namespace keel {

// Whole numbers that fit are held as int64_t. NaN and infinities cannot be stored.
using MetadataValue = std::variant<bool, int64_t, uint64_t, double, std::string>;
using Metadata = std::map<std::string, MetadataValue>;

// kInvalid, with the name: JSON that is no number, text, true or false.
Result<MetadataValue> MetadataFromJson(const std::string& name, const Json& json);

// "12", "0.5", "true", "text": for people.
std::string MetadataText(const MetadataValue& value);

// "evenkeel 0.2.0"
std::string_view WriterVersion();

// Keys in `user` that mark a checkpoint made by `keel repair`.
inline constexpr std::string_view kRepairKey = "repair";  // "3 of 12 tensors ..."
inline constexpr std::string_view kRepairedFromKey = "repaired_from";
inline constexpr std::string_view kRepairLostKey = "repair_lost";  // JSON: a list of names

struct Description {
  std::string writer{WriterVersion()};  // the program that wrote it, for people
  uint64_t step = 0;
  Codec codec = Codec::kPlanes;  // as asked for; each frame says which one it used
  // What training needs to go on: data_epoch, cursor, seed, lanes, lane_batch, lr_position,
  // loss_scale, trail, fingerprint, job ... (FORMAT.md 5 lists the names in use).
  Metadata metadata;
  std::map<std::string, std::string> user;  // what the user wishes to remember
  Layout layout;
  bool operator==(const Description&) const = default;
};

// kInvalid: names or values that JSON cannot hold.
Status CheckDescription(const Description& description);

// Members "format" to "user", in FORMAT.md's order; "tensors" is added by DescriptionText().
Json DescriptionJson(const Description& description, std::string_view attempt);
Json TensorJson(const PlacedTensor& tensor);
std::string DescriptionText(const Description& description, std::string_view attempt);

struct ParsedDescription {
  Description description;
  std::string attempt;
};
Result<ParsedDescription> ParseDescriptionText(std::string_view text);

// For the manifest, whose JSON has these members and those named in `more`.
Result<ParsedDescription> ReadDescription(const Json& json, const std::vector<std::string>& more);

}  // namespace keel
