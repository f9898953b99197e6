// FrameScan: several threads read and verify frames of a checkpoint, and hand them on.
// Promises   content reaches `use` only after the digests of its stored bytes, of its content and
//            of each of its pieces have matched. A scan at Depth::kStored says whether every byte
//            on the disk is what was written there. It holds a few frames per thread in memory.
//            All damage is collected, not only the first. What a store does not return is no
//            progress.
// Threads    `use` is called from several threads, for different frames, in no order.
// Errors     damage is not an error of the scan: see the returned list. A store that is away
//            (ckpt/away.h) is one, and ends it at once: nothing is known then. kCancelled.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ckpt/checkpoint.h"
#include "ckpt/shard_writer.h"

namespace keel {

struct Damage {
  uint64_t frame = 0;
  std::string place;  // "shard /x/y.keel: frame 12 at byte 81920"
  Error error;        // the reason only
};

enum class Depth {
  kStored,   // the bytes on the disk: several times as fast, but there is no content to use
  kContent,  // also what they unpack to
};

struct ScanOptions {
  int threads = 2;
  Progress* progress = nullptr;  // outlives the call
  Depth depth = Depth::kContent;
};

// May be empty: then frames are only verified.
using UseFrame = std::function<void(uint64_t frame, std::span<const std::byte> content)>;

// Returns damage in the order of frames.
Result<std::vector<Damage>> ScanFrames(const Checkpoint& checkpoint,
                                       const std::vector<FrameRange>& ranges,
                                       const ScanOptions& options, const UseFrame& use);

// Reads and verifies single frames, for callers that need few. One thread at a time.
class FrameReader {
 public:
  explicit FrameReader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // Valid until the next call. Reads ahead up to `ahead` frames of the same shard.
  // kCorrupt with the reason only; those of Files, with file and place.
  Result<std::span<const std::byte>> Read(uint64_t frame, uint64_t ahead = 1);
  // The same without unpacking the frame.
  Status Check(uint64_t frame, uint64_t ahead = 1);

 private:
  // The frame's stored bytes, checked.
  Result<std::span<const std::byte>> Stored(const Checkpoint::FramePlace& place, uint64_t frame,
                                            uint64_t ahead);
  Status Fetch(const Checkpoint::FramePlace& place, uint64_t frame, uint64_t ahead);

  const Checkpoint& checkpoint_;
  FrameCoder coder_;
  std::vector<std::byte> stored_;  // of frames fetched_
  FrameRange fetched_;
  std::vector<std::byte> content_;
};

// The frames that hold these tensors, each once, in order.
std::vector<FrameRange> FramesOfTensors(const Layout& layout, const std::vector<size_t>& tensors);

}  // namespace keel
