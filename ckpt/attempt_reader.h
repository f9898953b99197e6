// AttemptReader: one attempt to save a step, as far as its shards can still be read.
// Promises   content of a frame is given only when it is proved to be what was written: by the
//            digests of its shard's footer or, if the footer is damaged, by the frame's own digest
//            and place. If there is a manifest, its digest of each tensor must be checked, too:
//            PieceDigests() serves that.
// Does not   need a manifest, nor all shards; write anything.
// Threads    const methods from any thread, each with a Scratch of its own.
// Errors     Open(): nothing of the attempt can be used, and why. Read(): the part's trouble, or
//            kCorrupt with the reason. Both: that of a store that is away (ckpt/away.h), which says
//            nothing about the attempt; so does kIo of Open(), a shard that a disk refused to open.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ckpt/frame_hunt.h"
#include "ckpt/manifest.h"
#include "ckpt/shard_reader.h"

namespace keel {

class AttemptReader {
 public:
  struct Scratch {
    FrameCoder coder;
    std::vector<std::byte> stored;
    std::vector<std::byte> content;
    bool is_mended = false;  // the content is proved, but stored bytes around it were changed
  };

  // `manifest`: that of this attempt; null if there is no whole one.
  static Result<std::unique_ptr<AttemptReader>> Open(Files& files, const std::string& step_dir,
                                                     const std::string& attempt, uint32_t parts,
                                                     const Manifest* manifest);

  const Description& description() const { return description_; }
  const Layout& layout() const { return description_.layout; }
  const std::string& attempt() const { return attempt_; }
  bool in_bucket() const { return in_bucket_; }
  uint32_t parts() const { return static_cast<uint32_t>(parts_.size()); }
  uint32_t PartOfFrame(uint64_t frame) const;
  // What is wrong with a shard as a whole, naming it; empty: nothing.
  const std::string& Trouble(uint32_t part) const { return parts_.at(part).trouble; }

  // Whether a shard's footer is whole, and proves its frames.
  bool HasFooter(uint32_t part) const { return parts_.at(part).reader != nullptr; }

  // The frames of a part that Read() may find, in order. All others are lost, and for the same
  // reason: LostReason(). There may be more of them than could be gone through one by one.
  std::vector<FrameRange> FoundFrames(uint32_t part) const;
  std::string LostReason(uint32_t part) const;

  // Verified content, in scratch->content.
  Status Read(uint64_t frame, Scratch* scratch) const;
  // The digests of the pieces of a frame that has been read: from the footer, or computed anew.
  std::vector<Digest> PieceDigests(uint64_t frame, std::span<const std::byte> content) const;

 private:
  struct Part {
    std::string trouble;
    std::unique_ptr<ShardReader> reader;  // its footer is whole
    std::vector<size_t> first_piece;      // of each frame, among the reader's pieces
    std::unique_ptr<File> file;           // otherwise its frames are hunted for
    FrameSpots spots;
  };

  AttemptReader(std::string attempt, uint32_t parts, bool in_bucket)
      : attempt_(std::move(attempt)), in_bucket_(in_bucket), parts_(parts) {}
  // About the bytes of a file that was not opened for that reason.
  bool SaysNothing(const std::string& path, const Error& error) const;
  Result<std::vector<Result<std::unique_ptr<ShardReader>>>> OpenAll(
      Files& files, const std::string& step_dir) const;
  Status Describe(const std::vector<Result<std::unique_ptr<ShardReader>>>& shards,
                  const Manifest* manifest);
  Status TakeShard(Files& files, const std::string& path, uint32_t part,
                   Result<std::unique_ptr<ShardReader>> shard, const Manifest* manifest);
  Status Hunt(Files& files, const std::string& path, uint32_t part, bool has_manifest);
  Status ReadWithFooter(const Part& part, uint64_t frame, Scratch* scratch) const;
  Status ReadHunted(const Part& part, uint64_t frame, Scratch* scratch) const;

  const std::string attempt_;
  const bool in_bucket_;
  Description description_;
  std::vector<Part> parts_;
};

}  // namespace keel
