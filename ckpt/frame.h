// Frame: one piece of the stream as it is stored: header, payload (ckpt/FORMAT.md 4).
// Promises   encoding gives the same bytes on every CPU. Decoding gives exactly the content that
//            was encoded, checked by its digest, or an error. Whatever the bytes are, it neither
//            crashes, nor allocates by what they say, nor writes past `into`.
// Does not   check the digest of the stored bytes, which the shard's index holds: check that first
//            (ckpt/shard_reader.h), since zstd does not notice every damaged bit.
// Threads    one at a time; each thread keeps a FrameCoder of its own.
// Errors     kCorrupt, with the reason only: the caller knows file and place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "ckpt/format.h"
#include "ckpt/layout.h"
#include "ckpt/zstd_coder.h"

namespace keel {

inline constexpr int kZstdLevel = 1;

struct CodecChoice {
  Codec codec = Codec::kPlanes;  // with kPlanes, types that are not floats go through zstd
  int zstd_level = kZstdLevel;
};

// "none", "zstd", "planes".
std::string_view CodecName(Codec codec);
Result<Codec> ParseCodec(std::string_view name);

// What a frame says about itself.
struct FrameHeader {
  Codec codec = Codec::kNone;
  uint8_t width = 1;
  bool rotated = false;
  uint8_t coded_planes = 0;
  uint32_t content_bytes = 0;
  uint32_t payload_bytes = 0;
  uint64_t number = 0;
  Digest content_digest;
};

Result<FrameHeader> ParseFrameHeader(std::span<const std::byte> stored);

class FrameCoder {
 public:
  struct Encoded {
    size_t bytes = 0;  // header and payload
    Digest content_digest;
  };

  // `into` has room for StoredBytesMax(content.size()).
  Encoded Encode(uint64_t number, uint32_t width, std::span<const std::byte> content,
                const CodecChoice& choice, std::span<std::byte> into);

  // `stored` may end with padding. `into` has the size that the layout gives this frame.
  Status Decode(uint64_t number, uint32_t width, std::span<const std::byte> stored,
                std::span<std::byte> into);

 private:
  struct Payload {
    Codec codec = Codec::kNone;
    bool rotated = false;
    uint8_t coded_planes = 0;
    size_t bytes = 0;
  };

  Payload MakePayload(uint32_t width, std::span<const std::byte> content,
                      const CodecChoice& choice, std::span<std::byte> into);
  // Returns a payload of no bytes if coding is not worth it.
  Payload MakePlanes(uint32_t width, std::span<const std::byte> content, std::span<std::byte> into);
  Status DecodePlanes(const FrameHeader& header, std::span<const std::byte> payload,
                      std::span<std::byte> into);

  ZstdCoder zstd_;
  std::vector<std::byte> scratch_;
};

}  // namespace keel
