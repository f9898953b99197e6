// ZstdCoder: keeps libzstd and its traps in one file.
// Promises   a result only if it is smaller than the input; Expand() gives exactly the expected
//            number of bytes, from exactly one frame, or an error. It never writes past `into`.
// Does not   check digests: nearly every flipped bit in a Huffman-coded frame decodes without an
//            error (ckpt/frame.h does check).
// Threads    one at a time; each thread keeps its own, since a context costs about 0.5 MB.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"

namespace keel {

class ZstdCoder {
 public:
  ZstdCoder();
  ~ZstdCoder();
  ZstdCoder(const ZstdCoder&) = delete;
  ZstdCoder& operator=(const ZstdCoder&) = delete;

  // Both return the bytes written to `into`; empty if that would not save a byte or does not fit.
  // Huffman only, no matches; `seek_runs`: for planes that are mostly one value.
  std::optional<size_t> ShrinkPlane(std::span<const std::byte> plane, bool seek_runs,
                                    std::span<std::byte> into);
  std::optional<size_t> Shrink(std::span<const std::byte> content, int level,
                               std::span<std::byte> into);

  // kCorrupt, with the reason only.
  Status Expand(std::span<const std::byte> stored, std::span<std::byte> into);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

// 1 and 22 of today's library.
int ZstdLevelMin();
int ZstdLevelMax();

}  // namespace keel
