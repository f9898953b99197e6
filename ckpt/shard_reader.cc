// Reads a shard from its end: tail, footer, header, then frames.
#include "ckpt/shard_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace keel {
namespace {

Error Broken(std::string why) { return {Code::kCorrupt, std::move(why)}; }

}  // namespace

Result<std::unique_ptr<ShardReader>> ShardReader::Open(Files& files, const std::string& path) {
  KEEL_TRY_ASSIGN(auto file, files.Open(path, {.sequential = true}));
  std::unique_ptr<ShardReader> reader(new ShardReader(std::move(file), path));
  const Status status = reader->ReadFooter();
  if (!status.ok()) return status.error().Doing("shard " + path);
  return reader;
}

Status ShardReader::ReadExactly(uint64_t offset, std::span<std::byte> into) const {
  KEEL_TRY_ASSIGN(const size_t got, file_->ReadAt(offset, into));
  if (got == into.size()) return Ok();
  return Broken("the file ends at byte " + std::to_string(offset + got) + ", " +
                std::to_string(into.size() - got) + " bytes too early");
}

Status ShardReader::ReadFooter() {
  KEEL_TRY_ASSIGN(bytes_, file_->Size());
  if (bytes_ < kShardHeaderBytes + kShardTailBytes) {
    return Broken("it has " + std::to_string(bytes_) + " bytes, less than the smallest shard");
  }
  std::array<std::byte, kShardTailBytes> tail;
  KEEL_TRY(ReadExactly(bytes_ - kShardTailBytes, tail));
  KEEL_TRY_ASSIGN(tail_, ParseShardTail(tail, bytes_));
  std::array<std::byte, kShardHeaderBytes> header;
  KEEL_TRY(ReadExactly(0, header));
  std::vector<std::byte> footer(tail_.footer_bytes());  // not more than the file has
  KEEL_TRY(ReadExactly(tail_.index_offset, footer));
  const Digest found = ShardDigest(header, footer, tail);
  if (found != tail_.shard_digest) {
    return Broken("header, index or description were changed: their digest is " + found.Hex() +
                  " instead of " + tail_.shard_digest.Hex());
  }
  KEEL_TRY_ASSIGN(header_, ParseShardHeader(header));
  for (const uint32_t version : {header_.version, tail_.version}) {
    if (version != kFormatVersion) {
      return Error{Code::kInvalid, "it has format version " + std::to_string(version) +
                                       ", this program reads " + std::to_string(kFormatVersion) +
                                       ": use a newer Evenkeel"};
    }
  }
  if (header_.frames.count != tail_.index_bytes / kIndexEntryBytes) {
    return Broken("the header speaks of " + std::to_string(header_.frames.count) +
                  " frames, the index of " +
                  std::to_string(tail_.index_bytes / kIndexEntryBytes));
  }
  const auto all = std::span<const std::byte>(footer);
  KEEL_TRY_ASSIGN(index_, ParseIndex(all.first(tail_.index_bytes), tail_.index_offset,
                                     header_.frame_bytes));
  pieces_.resize(tail_.pieces_bytes / kDigestBytes);
  if (!pieces_.empty()) {
    std::memcpy(pieces_.data(), all.data() + tail_.index_bytes, tail_.pieces_bytes);
  }
  const auto text = all.subspan(tail_.index_bytes + tail_.pieces_bytes);
  description_text_.assign(reinterpret_cast<const char*>(text.data()), text.size());
  return Ok();
}

size_t ShardReader::StoredBytes(size_t first, size_t count) const {
  size_t bytes = 0;
  for (size_t i = first; i < first + count; ++i) bytes += index_.at(i).stored_bytes;
  return bytes;
}

Status ShardReader::ReadStored(size_t first, size_t count, std::span<std::byte> into) const {
  KEEL_CHECK(into.size() == StoredBytes(first, count), into.size());
  const Status read = ReadExactly(index_[first].offset, into);
  if (!read.ok()) return read.error().Doing(Place(first));
  return Ok();
}

Status ShardReader::CheckStored(size_t frame, std::span<const std::byte> stored) const {
  const Digest found = DigestOf(stored);
  if (found == index_.at(frame).stored_digest) return Ok();
  return Broken("its bytes were changed: their digest is " + found.Hex() + " instead of " +
                index_[frame].stored_digest.Hex());
}

std::string ShardReader::Place(size_t frame) const {
  return "shard " + path_ + ": frame " + std::to_string(header_.frames.first + frame) +
         " at byte " + std::to_string(index_.at(frame).offset);
}

}  // namespace keel
