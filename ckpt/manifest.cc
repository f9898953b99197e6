// Makes and reads the manifest's text.
#include "ckpt/manifest.h"

#include <algorithm>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/text.h"
#include "ckpt/names.h"

namespace keel {
namespace {

// The text ends with this, 32 digits of hex, and kAfterDigest. The digest covers all before it.
constexpr std::string_view kBeforeDigest = ",\n\"digest\":\"";
constexpr std::string_view kAfterDigest = "\"\n}\n";
constexpr size_t kEndBytes = kBeforeDigest.size() + 2 * kDigestBytes + kAfterDigest.size();

// One member per line, and one list element per line: for people, and for their diff and grep.
std::string TextOf(const Json& json) {
  std::string text = "{";
  const char* separator = "\n";
  for (const auto& [name, value] : json.items()) {
    text += separator + DumpJson(Json(name)) + ":";
    separator = ",\n";
    if (!value.is_array() || value.empty()) {
      text += DumpJson(value);
      continue;
    }
    const char* element_separator = "[\n ";
    for (const Json& element : value) {
      text += element_separator + DumpJson(element);
      element_separator = ",\n ";
    }
    text += "]";
  }
  return text;
}

Error Damaged(const std::string& why) {
  return {Code::kCorrupt, why + "; it was changed after it was written: take another checkpoint"};
}

// The digest at the end, after comparing it with that of the text before it.
Result<Digest> CheckDigest(std::string_view text) {
  if (text.size() < kEndBytes) {
    return Damaged("it has only " + std::to_string(text.size()) + " bytes");
  }
  const std::string_view end = text.substr(text.size() - kEndBytes);
  const auto digest = ParseDigest(end.substr(kBeforeDigest.size(), 2 * kDigestBytes));
  if (!end.starts_with(kBeforeDigest) || !end.ends_with(kAfterDigest) || !digest.ok()) {
    return Damaged("it does not end with a digest at byte " +
                   std::to_string(text.size() - kEndBytes));
  }
  const Digest found = DigestOf(BytesOf(text.substr(0, text.size() - kEndBytes)));
  if (found == *digest) return found;
  return Damaged("bytes 0 to " + std::to_string(text.size() - kEndBytes) + " have the digest " +
                 found.Hex() + ", but it ends with " + digest->Hex());
}

Result<Digest> DigestField(const Json& json, std::string_view name) {
  KEEL_TRY_ASSIGN(const std::string hex, Field<std::string>(json, name));
  return ParseDigest(hex);
}

Result<std::vector<ManifestShard>> ReadShards(const Json& json, const std::string& attempt,
                                              const Layout& layout) {
  KEEL_TRY_ASSIGN(const Json* const list, ArrayField(json, "shards"));
  const auto wrong = [](const std::string& what) { return Error{Code::kInvalid, what}; };
  if (list->empty() || list->size() > kShardsMax) {
    return wrong(std::to_string(list->size()) + " shards");
  }
  const auto parts = static_cast<uint32_t>(list->size());
  std::vector<ManifestShard> shards;
  for (uint32_t part = 0; part < parts; ++part) {
    const Json& object = (*list)[part];
    ManifestShard shard;
    KEEL_TRY_ASSIGN(shard.file, Field<std::string>(object, "file"));
    KEEL_TRY_ASSIGN(shard.bytes, Field<uint64_t>(object, "bytes"));
    KEEL_TRY_ASSIGN(shard.digest, DigestField(object, "digest"));
    KEEL_TRY_ASSIGN(shard.frames.first, Field<uint64_t>(object, "first_frame"));
    KEEL_TRY_ASSIGN(shard.frames.count, Field<uint64_t>(object, "frames"));
    if (object.size() != 5) return wrong("shard " + Shown(shard.file) + ": unknown members");
    const std::string name = ShardFileName({attempt, part, parts});
    if (shard.file != name) return wrong("shard " + Shown(shard.file) + " instead of " + name);
    if (shard.frames != layout.PartOf(part, parts)) {
      return wrong("shard " + name + ": frames " + std::to_string(shard.frames.first) + " to " +
                   std::to_string(shard.frames.first + shard.frames.count) +
                   " are not its part of " + std::to_string(layout.frame_count()));
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

Result<Manifest> Read(const Json& json) {
  KEEL_TRY_ASSIGN(ParsedDescription parsed,
                  ReadDescription(json, {"saved_at_ns", "shards", "digest"}));
  Manifest manifest;
  manifest.description = std::move(parsed.description);
  manifest.attempt = std::move(parsed.attempt);
  KEEL_TRY_ASSIGN(manifest.saved_at_ns, Field<int64_t>(json, "saved_at_ns"));
  for (const Json& tensor : json["tensors"]) {
    KEEL_TRY_ASSIGN(const Digest digest, DigestField(tensor, "digest"));
    manifest.tensor_digests.push_back(digest);
  }
  KEEL_TRY_ASSIGN(manifest.shards,
                  ReadShards(json, manifest.attempt, manifest.description.layout));
  return manifest;
}

}  // namespace

Digest TensorDigest(const std::vector<Digest>& pieces) {
  static_assert(sizeof(Digest) == kDigestBytes);
  return DigestOf(std::as_bytes(std::span(pieces)));
}

Digest TensorDigest(const Layout& layout, size_t tensor, std::span<const std::byte> bytes) {
  const PlacedTensor& placed = layout.tensors().at(tensor);
  KEEL_CHECK(bytes.size() == placed.bytes, bytes.size() << " of " << placed.bytes);
  std::vector<Digest> pieces;
  for (uint64_t at = 0; at < placed.bytes;) {
    const uint64_t to_cut = layout.frame_bytes() - (placed.offset + at) % layout.frame_bytes();
    const uint64_t count = std::min(to_cut, placed.bytes - at);
    pieces.push_back(DigestOf(bytes.subspan(at, count)));
    at += count;
  }
  return TensorDigest(pieces);
}

std::string ManifestText(const Manifest& manifest) {
  const Layout& layout = manifest.description.layout;
  KEEL_CHECK(manifest.tensor_digests.size() == layout.tensors().size(),
             manifest.tensor_digests.size() << " digests");
  Json json = DescriptionJson(manifest.description, manifest.attempt);
  json["saved_at_ns"] = manifest.saved_at_ns;
  Json shards = Json::array();
  for (const ManifestShard& shard : manifest.shards) {
    shards.push_back({{"file", shard.file},
                      {"bytes", shard.bytes},
                      {"digest", shard.digest.Hex()},
                      {"first_frame", shard.frames.first},
                      {"frames", shard.frames.count}});
  }
  json["shards"] = std::move(shards);
  Json tensors = Json::array();
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    Json tensor = TensorJson(layout.tensors()[i]);
    tensor["digest"] = manifest.tensor_digests[i].Hex();
    tensors.push_back(std::move(tensor));
  }
  json["tensors"] = std::move(tensors);
  std::string text = TextOf(json);
  const std::string digest = DigestOf(BytesOf(text)).Hex();
  return text.append(kBeforeDigest).append(digest).append(kAfterDigest);
}

Result<Manifest> ParseManifest(std::string_view text) {
  const auto digest = CheckDigest(text);
  if (!digest.ok()) return digest.error();
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{Code::kInvalid, "it is no JSON object"};
  return Read(json);
}

Result<Manifest> ReadManifest(Files& files, const std::string& step_dir) {
  const std::string path = JoinPath(step_dir, kManifestName);
  KEEL_TRY_ASSIGN(const std::string text, ReadWhole(files, path, kManifestBytesMax));
  Result<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return manifest.error().Doing("manifest " + path);
  return manifest;
}

}  // namespace keel
