// Checkpoint: a committed checkpoint, opened: manifest and all shards, compared with each other.
// Promises   once open, every frame has one place, sizes and digests of shards are the manifest's,
//            and each tensor's digest follows from the shards' piece digests. It reports all that
//            is wrong, not only the first.
// Does not   read frames (ckpt/frame_scan.h, ckpt/tensor_reader.h).
// Threads    const methods from any thread.
// Errors     kNotFound: no manifest, or a shard is missing; kCorrupt; kInvalid: a newer version. Of
//            a store that is away (ckpt/away.h) the first error alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/manifest.h"
#include "ckpt/names.h"
#include "ckpt/shard_reader.h"

namespace keel {

class Checkpoint {
 public:
  // `step_dir` holds the manifest; ckpt/catalog.h finds it.
  static Result<std::unique_ptr<Checkpoint>> Open(Files& files, const std::string& step_dir);

  const std::string& dir() const { return dir_; }
  bool in_bucket() const { return in_bucket_; }
  const Manifest& manifest() const { return manifest_; }
  const Layout& layout() const { return manifest_.description.layout; }
  const std::vector<std::unique_ptr<ShardReader>>& shards() const { return shards_; }
  uint64_t stored_bytes() const;  // of all shards

  struct FramePlace {
    const ShardReader* shard = nullptr;
    size_t index = 0;                // in the shard
    const Digest* pieces = nullptr;  // of its pieces, in their order
  };
  FramePlace Locate(uint64_t frame) const;

 private:
  Checkpoint(std::string dir, bool in_bucket, Manifest manifest)
      : dir_(std::move(dir)), in_bucket_(in_bucket), manifest_(std::move(manifest)) {}
  Status OpenShards(Files& files);

  const std::string dir_;
  const bool in_bucket_;
  const Manifest manifest_;
  std::vector<std::unique_ptr<ShardReader>> shards_;
  std::vector<std::vector<size_t>> first_piece_;  // by shard and frame
};

// Checks that a shard is part `part` of `parts` of the attempt, and fits the layout.
Status CheckShardFits(const ShardReader& shard, const Description& description,
                      const ShardName& name);

// Computes each tensor's digest, by index in the layout, from the shards' piece digests. The shards
// hold every frame, in order, and fit the layout.
std::vector<Digest> CombineTensorDigests(const Layout& layout,
                                         const std::vector<std::unique_ptr<ShardReader>>& shards);

}  // namespace keel
