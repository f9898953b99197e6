// ShardReader: one shard, opened, and checked up to its footer.
// Promises   Open() has verified header, index, piece digests and description against the shard's
//            digest, and their sizes against the file's before allocating anything by them.
// Does not   read frames by itself; trust them before CheckStored() and FrameCoder::Decode().
// Threads    const methods from any thread.
// Errors     kCorrupt, kInvalid (a newer version), those of Files; they name file and place.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/shard_format.h"

namespace keel {

class ShardReader {
 public:
  static Result<std::unique_ptr<ShardReader>> Open(Files& files, const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  const Digest& digest() const { return tail_.shard_digest; }
  const ShardHeader& header() const { return header_; }
  // In the order of header().frames.
  const std::vector<IndexEntry>& index() const { return index_; }
  // One digest for each piece of each frame, in that order.
  const std::vector<Digest>& pieces() const { return pieces_; }
  const std::string& description_text() const { return description_text_; }

  // The stored bytes of `count` frames from frame `first` of this shard on, one after the other.
  // kCorrupt if the file ends too early.
  Status ReadStored(size_t first, size_t count, std::span<std::byte> into) const;
  size_t StoredBytes(size_t first, size_t count) const;
  // Whether they are what was written. kCorrupt with the reason only.
  Status CheckStored(size_t frame, std::span<const std::byte> stored) const;
  // "shard /x/y.keel: frame 12 at byte 81920"
  std::string Place(size_t frame) const;

 private:
  ShardReader(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Status ReadFooter();
  Status ReadExactly(uint64_t offset, std::span<std::byte> into) const;

  const std::unique_ptr<File> file_;
  const std::string path_;
  uint64_t bytes_ = 0;
  ShardHeader header_;
  ShardTail tail_;
  std::vector<IndexEntry> index_;
  std::vector<Digest> pieces_;
  std::string description_text_;
};

}  // namespace keel
