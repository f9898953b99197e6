// HuntFrames: where frames seem to lie in a shard whose index is lost or cannot be trusted.
// Promises   finds each frame whose header is undamaged, wherever it is, in one pass over the file
//            with 1 MiB of memory; skips what is lost.
// Does not   believe what it finds: content may look like a frame. Decoding one checks its digest.
// Threads    any. Errors: that of a store that is away (ckpt/away.h). Else none; what is not found
//            does not exist.
#pragma once

#include <map>
#include <vector>

#include "base/files.h"
#include "ckpt/layout.h"

namespace keel {

struct FrameSpot {
  uint64_t offset = 0;  // in the file
  uint32_t bytes = 0;   // of header and payload
};

// By frame, with a few spots for each at most.
using FrameSpots = std::map<uint64_t, std::vector<FrameSpot>>;

// Finds only frames of `frames` whose headers agree with `layout`.
Result<FrameSpots> HuntFrames(File& file, bool in_bucket, const Layout& layout,
                              FrameRange frames);

// The spots that touch one of the frame before or after them, or the start of the shard. A frame
// whose number was changed, which no digest covers, passes for another one, but not in that one's
// place.
FrameSpots InTheirPlace(const FrameSpots& spots, FrameRange frames);

}  // namespace keel
