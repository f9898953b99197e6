// Manifest: the file whose presence makes a checkpoint (ckpt/FORMAT.md 5).
// Promises   parsing gives a whole manifest whose parts agree with each other, or an error: the
//            digest at its end reveals any changed byte. Shards together hold every frame once,
//            and tensors lie where the layout puts them.
// Does not   look at shards (ckpt/checkpoint.h). Write files (ckpt/save.h).
// Threads    a plain value.
// Errors     kCorrupt: not what was written; kInvalid: another program's, or a newer version's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "base/result.h"
#include "ckpt/description.h"

namespace keel {

struct ManifestShard {
  std::string file;
  uint64_t bytes = 0;
  Digest digest;
  FrameRange frames;
};

struct Manifest {
  Description description;
  std::string attempt;
  int64_t saved_at_ns = 0;  // since 1970, UTC; for people
  std::vector<Digest> tensor_digests;  // by index in the layout: see TensorDigest()
  std::vector<ManifestShard> shards;   // in the order of their frames
};

// A tensor's digest is the digest of its pieces' digests, one after the other, so several writers
// can make it together. It depends on where frames cut the tensor.
Digest TensorDigest(const std::vector<Digest>& pieces);
// The digest of a whole tensor that lies in memory.
Digest TensorDigest(const Layout& layout, size_t tensor, std::span<const std::byte> bytes);

std::string ManifestText(const Manifest& manifest);
// Messages say what is wrong, not in which file.
Result<Manifest> ParseManifest(std::string_view text);

// DIR/manifest.json; errors name it. kNotFound: it is not there.
Result<Manifest> ReadManifest(Files& files, const std::string& step_dir);

}  // namespace keel
