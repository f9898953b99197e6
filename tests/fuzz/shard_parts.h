// Shards as fuzzing needs them: taken apart, put together, and sealed with digests that fit.
// Promises   works on bytes that are no shard: then as far as they go. Allocates by their size,
//            never by what they say (frames of more than kFuzzContentMax are left as they are).
// Does not   serve but in tests. Threads: one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/shard_format.h"

namespace keel {

// Contents beyond this are not decoded: legal, but too slow to try often.
inline constexpr size_t kFuzzContentMax = 1 << 20;

// Gives a frame the digest of what its payload decodes to. False: it does not decode.
bool SealFrame(std::span<std::byte> stored);

// Gives frames, index, piece digests and tail the digests that fit what is there.
void SealShard(std::span<std::byte> shard);

struct ShardParts {
  std::string header;
  std::vector<std::string> frames;       // stored bytes
  std::vector<IndexEntry> index;         // of each frame; places follow from `frames`
  std::string pieces;
  std::string description;
};

// None where the index does not lead to frames.
std::optional<ShardParts> TakeApart(std::string_view shard);
// With the places and sizes that index and tail must give; not sealed.
std::string PutTogether(const ShardParts& parts);

}  // namespace keel
