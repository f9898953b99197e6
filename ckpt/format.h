// The numbers of ckpt/FORMAT.md; section numbers in comments are that document's.
// Promises   what these numbers write they also read: change both files in one commit, raise
//            kFormatVersion, and add an old file to the tests.
// Does not   know file names (ckpt/names.h).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace keel {

static_assert(std::endian::native == std::endian::little,
              "tensor bytes are stored as they lie in memory, little-endian (FORMAT.md 1)");

inline constexpr uint32_t kFormatVersion = 1;

// 2: the logical stream
inline constexpr uint32_t kTensorAlignment = 64;
inline constexpr uint32_t kFrameBytes = 512 * 1024;  // the default
inline constexpr uint32_t kFrameBytesMin = 64;
inline constexpr uint32_t kFrameBytesMax = 16 * 1024 * 1024;
inline constexpr uint64_t kStreamBytesMax = uint64_t{1} << 56;

// 3: a shard
inline constexpr uint64_t kShardMagic = 0x314448534C45454BULL;  // "KEELSHD1"
inline constexpr uint64_t kTailMagic = 0x31444E454C45454BULL;   // "KEELEND1"
inline constexpr size_t kShardHeaderBytes = 64;
inline constexpr size_t kAttemptBytes = 16;  // of hex digits, in names and in the header
inline constexpr size_t kIndexEntryBytes = 32;
inline constexpr size_t kDigestBytes = 16;
inline constexpr size_t kShardTailBytes = 64;
inline constexpr uint32_t kSlotFrames = 8;
inline constexpr size_t kSlotAlignment = 4096;
inline constexpr uint32_t kShardsMax = 9999;
inline constexpr uint64_t kDescriptionBytesMax = 256 * 1024 * 1024;

// 4: a frame
inline constexpr uint32_t kFrameMagic = 0x314D524B;  // "KRM1"
inline constexpr size_t kFrameHeaderBytes = 40;
inline constexpr size_t kPlaneSizeBytes = 4;
inline constexpr size_t kWidthMax = 8;
inline constexpr uint8_t kFlagRotated = 1;

// 5: the manifest
inline constexpr uint64_t kStepMax = 999'999'999'999'999'999;  // 18 digits in a directory's name
inline constexpr std::string_view kManifestFormat = "keel-checkpoint";
inline constexpr uint64_t kManifestBytesMax = 512 * 1024 * 1024;

// How a frame's payload was made from its content; the values are on disk.
enum class Codec : uint8_t { kNone = 0, kZstd = 1, kPlanes = 2 };

static_assert(kFrameBytes % kTensorAlignment == 0 && kFrameBytesMin % kTensorAlignment == 0);
static_assert(kTensorAlignment % kWidthMax == 0, "a frame must hold whole elements");
static_assert(kFrameHeaderBytes == 4 + 4 + 4 + 4 + 8 + kDigestBytes);
static_assert(kIndexEntryBytes == 8 + 4 + 4 + kDigestBytes);
static_assert(kShardTailBytes == 8 + 8 + 8 + 8 + 4 + 4 + kDigestBytes + 8);
static_assert(kShardHeaderBytes == 8 + 4 + 4 + 4 + 4 + 8 + 8 + 8 + kAttemptBytes);

// The longest possible frame: header, plane sizes, payload, padding of its slot.
inline constexpr size_t StoredBytesMax(size_t content_bytes) {
  return kFrameHeaderBytes + kWidthMax * kPlaneSizeBytes + content_bytes + kSlotAlignment;
}

}  // namespace keel
