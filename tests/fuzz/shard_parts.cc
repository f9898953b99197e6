// Reads shards leniently, since their digests do not fit yet.
#include "tests/fuzz/shard_parts.h"

#include <algorithm>
#include <cstring>

#include "base/file_helpers.h"
#include "ckpt/description.h"
#include "ckpt/frame.h"
#include "ckpt/wire.h"

namespace keel {
namespace {

constexpr size_t kContentDigestAt = 24;  // FORMAT.md 4
constexpr size_t kStoredDigestAt = 16;   // FORMAT.md 3, index
constexpr size_t kShardDigestAt = 40;    // FORMAT.md 3, tail

struct Regions {
  std::span<std::byte> index, pieces, description, tail;
};

std::optional<Regions> Find(std::span<std::byte> shard) {
  if (shard.size() < kShardHeaderBytes + kShardTailBytes) return std::nullopt;
  const auto tail = shard.last(kShardTailBytes);
  const auto parsed = ParseShardTail(tail, shard.size());
  if (!parsed.ok()) return std::nullopt;
  const auto footer = shard.subspan(parsed->index_offset, parsed->footer_bytes());
  return Regions{footer.first(parsed->index_bytes),
                 footer.subspan(parsed->index_bytes, parsed->pieces_bytes),
                 footer.last(parsed->description_bytes), tail};
}

// Where an index entry says that its frame is; empty where that is not in the shard.
std::span<std::byte> FrameOf(std::span<std::byte> shard, std::span<const std::byte> entry) {
  WireReader wire(entry);
  const auto offset = wire.Get<uint64_t>();
  const auto bytes = wire.Get<uint32_t>();
  if (offset < kShardHeaderBytes || offset > shard.size() || bytes > shard.size() - offset) {
    return {};
  }
  return shard.subspan(offset, bytes);
}

void Put(const Digest& digest, std::span<std::byte> into, size_t at) {
  std::memcpy(into.data() + at, digest.bytes.data(), kDigestBytes);
}

// One for all: its contexts cost more than a small frame.
FrameCoder& Coder() {
  static FrameCoder coder;
  return coder;
}

// The frame's content; none where it does not decode or is too large.
std::optional<std::vector<std::byte>> ContentOf(std::span<const std::byte> stored) {
  const auto header = ParseFrameHeader(stored);
  if (!header.ok() || header->content_bytes > kFuzzContentMax) return std::nullopt;
  std::vector<std::byte> content(header->content_bytes);
  if (!Coder().Decode(header->number, header->width, stored, content).ok()) return std::nullopt;
  return content;
}

void SealPieces(std::span<std::byte> shard, const Regions& regions) {
  const auto header = ParseShardHeader(shard);
  const auto text = std::string_view(reinterpret_cast<const char*>(regions.description.data()),
                                     regions.description.size());
  const auto described = ParseDescriptionText(text);
  if (!header.ok() || !described.ok()) return;
  const Layout& layout = described->description.layout;
  auto left = regions.pieces;
  for (size_t i = 0; i < regions.index.size() / kIndexEntryBytes; ++i) {
    const uint64_t frame = header->frames.first + i;
    if (frame >= layout.frame_count()) return;
    const auto entry = regions.index.subspan(i * kIndexEntryBytes, kIndexEntryBytes);
    const auto content = ContentOf(FrameOf(shard, entry));
    for (const Piece& piece : layout.PiecesOf(frame)) {
      if (left.size() < kDigestBytes) return;
      if (content.has_value() && piece.frame_offset + piece.bytes <= content->size()) {
        Put(DigestOf(std::span(*content).subspan(piece.frame_offset, piece.bytes)), left, 0);
      }
      left = left.subspan(kDigestBytes);
    }
  }
}

}  // namespace

bool SealFrame(std::span<std::byte> stored) {
  const auto header = ParseFrameHeader(stored);
  if (!header.ok() || header->content_bytes > kFuzzContentMax) return false;
  std::vector<std::byte> content(header->content_bytes);
  // It decodes first and compares the digest then, so that the content is there even so.
  if (Coder().Decode(header->number, header->width, stored, content).ok()) return true;
  Put(DigestOf(content), stored, kContentDigestAt);
  return Coder().Decode(header->number, header->width, stored, content).ok();
}

void SealShard(std::span<std::byte> shard) {
  const auto regions = Find(shard);
  if (!regions.has_value()) return;
  for (size_t at = 0; at + kIndexEntryBytes <= regions->index.size(); at += kIndexEntryBytes) {
    const auto entry = regions->index.subspan(at, kIndexEntryBytes);
    const auto frame = FrameOf(shard, entry);
    if (frame.empty()) continue;
    (void)SealFrame(frame);
    Put(DigestOf(frame), entry, kStoredDigestAt);
  }
  SealPieces(shard, *regions);
  const auto footer = shard.subspan(regions->index.data() - shard.data())
                          .first(regions->tail.data() - regions->index.data());
  Put(ShardDigest(shard, footer, regions->tail), regions->tail, kShardDigestAt);
}

std::optional<ShardParts> TakeApart(std::string_view shard) {
  std::string copy(shard);
  const auto bytes = std::as_writable_bytes(std::span(copy));
  const auto regions = Find(bytes);
  if (!regions.has_value()) return std::nullopt;
  const auto text = [](std::span<const std::byte> region) {
    return std::string(reinterpret_cast<const char*>(region.data()), region.size());
  };
  ShardParts parts;
  parts.header = text(bytes.first(kShardHeaderBytes));
  for (size_t at = 0; at + kIndexEntryBytes <= regions->index.size(); at += kIndexEntryBytes) {
    const auto entry = regions->index.subspan(at, kIndexEntryBytes);
    const auto frame = FrameOf(bytes, entry);
    if (frame.empty()) return std::nullopt;
    parts.frames.push_back(text(frame));
    WireReader wire(entry.subspan(12));
    parts.index.push_back({0, 0, wire.Get<uint32_t>(), {}});
  }
  parts.pieces = text(regions->pieces);
  parts.description = text(regions->description);
  return parts;
}

std::string PutTogether(const ShardParts& parts) {
  std::string shard = parts.header;
  shard.resize(kShardHeaderBytes);
  std::vector<IndexEntry> entries = parts.index;
  entries.resize(parts.frames.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].offset = shard.size();
    entries[i].stored_bytes = static_cast<uint32_t>(parts.frames[i].size());
    shard += parts.frames[i];
  }
  ShardTail tail;
  tail.index_offset = shard.size();
  tail.index_bytes = entries.size() * kIndexEntryBytes;
  tail.pieces_bytes = parts.pieces.size();
  tail.description_bytes = parts.description.size();
  const auto append = [&](size_t bytes) {
    shard.resize(shard.size() + bytes);
    return std::as_writable_bytes(std::span(shard)).last(bytes);
  };
  PutIndex(entries, append(tail.index_bytes));
  shard += parts.pieces + parts.description;
  PutShardTail(tail, append(kShardTailBytes));
  return shard;
}

}  // namespace keel
