// The only file that includes zstd.h.
#define ZSTD_STATIC_LINKING_ONLY  // for the mode of literals
#include "ckpt/zstd_coder.h"

#include <zstd.h>

#include <algorithm>
#include <string>

#include "base/check.h"

namespace keel {
namespace {

// Its enum has had two names; the numbers have been the same since 1.3.
constexpr int kHuffmanAlways = 1;
constexpr int kHuffmanAuto = 0;
// This level finds repeats of a few hundred bytes, at next to no cost.
constexpr int kRunsLevel = -200;

bool Set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  return !ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value));
}

// ZSTD_compressCCtx() would silently ignore the settings.
std::optional<size_t> Compress(ZSTD_CCtx* context, std::span<const std::byte> from,
                               std::span<std::byte> into) {
  if (from.size() < 2) return std::nullopt;
  const size_t room = std::min(into.size(), from.size() - 1);
  const size_t bytes = ZSTD_compress2(context, into.data(), room, from.data(), from.size());
  if (ZSTD_isError(bytes)) return std::nullopt;
  return bytes;
}

Error Broken(const std::string& why) { return {Code::kCorrupt, "zstd data: " + why}; }

}  // namespace

struct ZstdCoder::Contexts {
  Contexts() : planes(ZSTD_createCCtx()), plain(ZSTD_createCCtx()), expand(ZSTD_createDCtx()) {
    KEEL_CHECK(planes != nullptr && plain != nullptr && expand != nullptr,
               "out of memory for zstd contexts");
    for (ZSTD_CCtx* context : {planes, plain}) {
      const bool set = Set(context, ZSTD_c_contentSizeFlag, 1) &&
                       Set(context, ZSTD_c_checksumFlag, 0) && Set(context, ZSTD_c_dictIDFlag, 0);
      KEEL_CHECK(set, "zstd refuses its frame parameters");
    }
    huffman_only = Set(planes, ZSTD_c_literalCompressionMode, kHuffmanAlways) &&
                   Set(planes, ZSTD_c_compressionLevel, ZSTD_minCLevel());
    if (!huffman_only) {
      // The stable interface has nothing nearer: the same size at half the speed.
      (void)Set(planes, ZSTD_c_literalCompressionMode, kHuffmanAuto);
      const bool set = Set(planes, ZSTD_c_compressionLevel, 1) &&
                       Set(planes, ZSTD_c_minMatch, 7) && Set(planes, ZSTD_c_hashLog, 6);
      KEEL_CHECK(set, "zstd refuses level 1");
    }
  }
  ~Contexts() {
    ZSTD_freeCCtx(planes);
    ZSTD_freeCCtx(plain);
    ZSTD_freeDCtx(expand);
  }
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;

  ZSTD_CCtx* const planes;
  ZSTD_CCtx* const plain;
  ZSTD_DCtx* const expand;
  bool huffman_only = true;
};

ZstdCoder::ZstdCoder() : contexts_(std::make_unique<Contexts>()) {}
ZstdCoder::~ZstdCoder() = default;

std::optional<size_t> ZstdCoder::ShrinkPlane(std::span<const std::byte> plane, bool seek_runs,
                                             std::span<std::byte> into) {
  if (contexts_->huffman_only) {
    const int level = seek_runs ? kRunsLevel : ZSTD_minCLevel();
    KEEL_CHECK(Set(contexts_->planes, ZSTD_c_compressionLevel, level), "zstd level " << level);
  }
  return Compress(contexts_->planes, plane, into);
}

std::optional<size_t> ZstdCoder::Shrink(std::span<const std::byte> content, int level,
                                        std::span<std::byte> into) {
  KEEL_CHECK(level >= ZstdLevelMin() && level <= ZstdLevelMax(), "zstd level " << level);
  KEEL_CHECK(Set(contexts_->plain, ZSTD_c_compressionLevel, level), "zstd level " << level);
  return Compress(contexts_->plain, content, into);
}

Status ZstdCoder::Expand(std::span<const std::byte> stored, std::span<std::byte> into) {
  // ZSTD_decompressDCtx() would accept a second frame, a skippable one, or a size that differs.
  const size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame)) return Broken(ZSTD_getErrorName(frame));
  if (frame != stored.size()) {
    return Broken("it ends after " + std::to_string(frame) + " of " +
                  std::to_string(stored.size()) + " bytes");
  }
  const unsigned long long content = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (content != into.size()) {
    return Broken("it does not say that it holds " + std::to_string(into.size()) + " bytes");
  }
  const size_t got = ZSTD_decompressDCtx(contexts_->expand, into.data(), into.size(),
                                         stored.data(), stored.size());
  if (ZSTD_isError(got)) return Broken(ZSTD_getErrorName(got));
  if (got != into.size()) return Broken("it holds " + std::to_string(got) + " bytes");
  return Ok();
}

int ZstdLevelMin() { return 1; }
int ZstdLevelMax() { return ZSTD_maxCLevel(); }

}  // namespace keel
