// Verify: every digest of a checkpoint, and what each damaged frame hits.
// Promises   reads all bytes of all shards; reports all damage with file, place, tensors and
//            element ranges. Unpacks nothing where Depth::kStored is asked for.
// Does not   mend anything. Errors: as Checkpoint::Open(); kCancelled. Threads: makes its own.
#pragma once

#include <string>
#include <vector>

#include "ckpt/frame_scan.h"

namespace keel {

// Elements of a tensor that lie, in part at least, in a frame: first to last.
struct TensorHit {
  size_t tensor = 0;
  uint64_t first = 0;
  uint64_t last = 0;
};
std::vector<TensorHit> HitBy(const Layout& layout, uint64_t frame);

// "shard /x/y.keel: frame 12 at byte 81920 ('w' elements 0 to 99): its bytes were changed: ..."
Error DamageError(const Layout& layout, const Damage& damage);
// Fine when there is none; otherwise all of them in one error.
Status DamageStatus(const Checkpoint& checkpoint, const std::vector<Damage>& damages);

// An empty list: the checkpoint is whole.
Result<std::vector<Damage>> VerifyFrames(const Checkpoint& checkpoint, const ScanOptions& options);

}  // namespace keel
