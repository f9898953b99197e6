// ShardFormat: turns a shard's header, index and tail into bytes and back (ckpt/FORMAT.md 3).
// Promises   parsing checks all that the bytes say against the file's size before anything relies
//            on it. Does not: check digests; read files. Threads: any; plain values.
// Errors     kCorrupt, with the reason and the place in the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "ckpt/format.h"
#include "ckpt/layout.h"

namespace keel {

struct ShardHeader {
  uint32_t version = kFormatVersion;
  uint32_t frame_bytes = kFrameBytes;
  uint32_t part = 0;
  uint32_t parts = 1;
  FrameRange frames;
  uint64_t step = 0;
  std::string attempt;
};

struct IndexEntry {
  uint64_t offset = 0;  // in the file
  uint32_t stored_bytes = 0;
  uint32_t content_bytes = 0;
  Digest stored_digest;
};

struct ShardTail {
  uint64_t index_offset = 0;
  uint64_t index_bytes = 0;
  uint64_t pieces_bytes = 0;
  uint64_t description_bytes = 0;
  uint32_t version = kFormatVersion;
  Digest shard_digest;

  uint64_t footer_bytes() const { return index_bytes + pieces_bytes + description_bytes; }
};

void PutShardHeader(const ShardHeader& header, std::span<std::byte> into);
Result<ShardHeader> ParseShardHeader(std::span<const std::byte> bytes);

void PutIndex(std::span<const IndexEntry> entries, std::span<std::byte> into);
// Frames lie one after the other from the header to the index.
Result<std::vector<IndexEntry>> ParseIndex(std::span<const std::byte> bytes,
                                           uint64_t index_offset, uint32_t frame_bytes);

void PutShardTail(const ShardTail& tail, std::span<std::byte> into);
Result<ShardTail> ParseShardTail(std::span<const std::byte> bytes, uint64_t file_bytes);

// Covers the header, the footer, and the part of the tail before the digest.
Digest ShardDigest(std::span<const std::byte> header, std::span<const std::byte> footer,
                   std::span<const std::byte> tail);

}  // namespace keel
