// Reads and writes the fixed parts of a shard, field by field.
#include "ckpt/shard_format.h"

#include "base/file_helpers.h"
#include "ckpt/names.h"
#include "ckpt/wire.h"

namespace keel {
namespace {

constexpr size_t kTailDigestAt = kShardTailBytes - kDigestBytes - 8;

Error Broken(std::string why) { return {Code::kCorrupt, std::move(why)}; }

}  // namespace

void PutShardHeader(const ShardHeader& header, std::span<std::byte> into) {
  KEEL_CHECK(header.attempt.size() == kAttemptBytes, header.attempt);
  WireWriter wire(into.first(kShardHeaderBytes));
  wire.Put(kShardMagic);
  wire.Put(header.version);
  wire.Put(header.frame_bytes);
  wire.Put(header.part);
  wire.Put(header.parts);
  wire.Put(header.frames.first);
  wire.Put(header.frames.count);
  wire.Put(header.step);
  wire.PutBytes(BytesOf(header.attempt));
  KEEL_CHECK(wire.left() == 0, wire.left());
}

Result<ShardHeader> ParseShardHeader(std::span<const std::byte> bytes) {
  WireReader wire(bytes.first(kShardHeaderBytes));
  ShardHeader header;
  if (wire.Get<uint64_t>() != kShardMagic) return Broken("no shard begins at byte 0");
  header.version = wire.Get<uint32_t>();
  header.frame_bytes = wire.Get<uint32_t>();
  header.part = wire.Get<uint32_t>();
  header.parts = wire.Get<uint32_t>();
  header.frames.first = wire.Get<uint64_t>();
  header.frames.count = wire.Get<uint64_t>();
  header.step = wire.Get<uint64_t>();
  const auto attempt = wire.Take(kAttemptBytes);
  header.attempt.assign(reinterpret_cast<const char*>(attempt.data()), attempt.size());
  const Status good = CheckAttempt(header.attempt);
  if (!good.ok()) return Broken("header: " + good.error().message);
  if (header.parts == 0 || header.parts > kShardsMax || header.part >= header.parts) {
    return Broken("header: part " + std::to_string(header.part) + " of " +
                  std::to_string(header.parts));
  }
  if (header.frame_bytes < kFrameBytesMin || header.frame_bytes > kFrameBytesMax) {
    return Broken("header: frames of " + std::to_string(header.frame_bytes) + " bytes");
  }
  return header;
}

void PutIndex(std::span<const IndexEntry> entries, std::span<std::byte> into) {
  WireWriter wire(into);
  for (const IndexEntry& entry : entries) {
    wire.Put(entry.offset);
    wire.Put(entry.stored_bytes);
    wire.Put(entry.content_bytes);
    wire.Put(entry.stored_digest);
  }
}

Result<std::vector<IndexEntry>> ParseIndex(std::span<const std::byte> bytes,
                                           uint64_t index_offset, uint32_t frame_bytes) {
  WireReader wire(bytes);
  std::vector<IndexEntry> entries(bytes.size() / kIndexEntryBytes);
  uint64_t expected = kShardHeaderBytes;
  for (IndexEntry& entry : entries) {
    entry.offset = wire.Get<uint64_t>();
    entry.stored_bytes = wire.Get<uint32_t>();
    entry.content_bytes = wire.Get<uint32_t>();
    entry.stored_digest = wire.GetDigest();
    const std::string which = "index entry " + std::to_string(&entry - entries.data());
    if (entry.offset != expected) {
      return Broken(which + ": a frame at byte " + std::to_string(entry.offset) + " instead of " +
                    std::to_string(expected));
    }
    if (entry.content_bytes == 0 || entry.content_bytes > frame_bytes ||
        entry.stored_bytes < kFrameHeaderBytes ||
        entry.stored_bytes > StoredBytesMax(entry.content_bytes)) {
      return Broken(which + ": " + std::to_string(entry.content_bytes) + " bytes stored in " +
                    std::to_string(entry.stored_bytes));
    }
    expected += entry.stored_bytes;
  }
  if (expected != index_offset) {
    return Broken("frames end at byte " + std::to_string(expected) + ", the index begins at " +
                  std::to_string(index_offset));
  }
  return entries;
}

void PutShardTail(const ShardTail& tail, std::span<std::byte> into) {
  WireWriter wire(into.first(kShardTailBytes));
  wire.Put(tail.index_offset);
  wire.Put(tail.index_bytes);
  wire.Put(tail.pieces_bytes);
  wire.Put(tail.description_bytes);
  wire.Put(tail.version);
  wire.Put(uint32_t{0});
  wire.Put(tail.shard_digest);
  wire.Put(kTailMagic);
  KEEL_CHECK(wire.left() == 0, wire.left());
}

Result<ShardTail> ParseShardTail(std::span<const std::byte> bytes, uint64_t file_bytes) {
  const std::string where = "tail at byte " + std::to_string(file_bytes - kShardTailBytes) + ": ";
  WireReader wire(bytes.first(kShardTailBytes));
  ShardTail tail;
  tail.index_offset = wire.Get<uint64_t>();
  tail.index_bytes = wire.Get<uint64_t>();
  tail.pieces_bytes = wire.Get<uint64_t>();
  tail.description_bytes = wire.Get<uint64_t>();
  tail.version = wire.Get<uint32_t>();
  const auto reserved = wire.Get<uint32_t>();
  tail.shard_digest = wire.GetDigest();
  if (wire.Get<uint64_t>() != kTailMagic) {
    return Broken("the file does not end as a shard does: it is cut off, or was never finished");
  }
  if (reserved != 0) return Broken(where + "reserved bytes are not zero");
  // Each is compared with what is left of the file, so no sum can overflow.
  uint64_t left = file_bytes - kShardTailBytes;
  for (const uint64_t part : {tail.index_offset, tail.index_bytes, tail.pieces_bytes,
                              tail.description_bytes}) {
    if (part > left) return Broken(where + "its parts are longer than the file");
    left -= part;
  }
  if (left != 0) return Broken(where + "its parts are shorter than the file");
  if (tail.index_offset < kShardHeaderBytes || tail.index_bytes % kIndexEntryBytes != 0 ||
      tail.pieces_bytes % kDigestBytes != 0 || tail.description_bytes > kDescriptionBytesMax) {
    return Broken(where + "impossible sizes");
  }
  return tail;
}

Digest ShardDigest(std::span<const std::byte> header, std::span<const std::byte> footer,
                   std::span<const std::byte> tail) {
  Digester digester;
  digester.Update(header.first(kShardHeaderBytes));
  digester.Update(footer);
  digester.Update(tail.first(kTailDigestAt));
  return digester.Current();
}

}  // namespace keel
