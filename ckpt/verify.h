// Verify: checks every digest of a checkpoint, and says what each damaged frame hits.
// Promises   reads all bytes of all shards; reports all damage with file, place, tensors and
//            element ranges. At Depth::kStored it unpacks nothing.
// Does not   mend anything. Errors: as Checkpoint::Open(); kCancelled. Threads: starts its own.
#pragma once

#include <string>
#include <vector>

#include "ckpt/frame_scan.h"

namespace keel {

// The elements of a tensor that lie, at least in part, in a frame, from first to last.
struct TensorHit {
  size_t tensor = 0;
  uint64_t first = 0;
  uint64_t last = 0;
};
std::vector<TensorHit> HitBy(const Layout& layout, uint64_t frame);
// The same for frames that follow each other. It takes no longer for more of them.
std::vector<TensorHit> HitBy(const Layout& layout, FrameRange frames);

// "shard /x/y.keel: frame 12 at byte 81920 ('w' elements 0 to 99): its bytes were changed: ..."
Error DamageError(const Layout& layout, const Damage& damage);
// Ok if there is none; otherwise all of them in one error.
Status DamageStatus(const Checkpoint& checkpoint, const std::vector<Damage>& damages);

// An empty list: the checkpoint is whole.
Result<std::vector<Damage>> VerifyFrames(const Checkpoint& checkpoint, const ScanOptions& options);

}  // namespace keel
