// WriteShard: one worker's part of the stream, compressed on its way to a file of its own.
// Promises   on success the file's content is durable. It uses a few frames of memory per thread,
//            whatever the tensors' size. One writing thread writes from front to back.
// Does not   make, name or remove the file (ckpt/step_place.h). Guard against a source that changes
//            while it is read: the shard then fails its checks when it is loaded.
// Threads    starts threads of its own and joins them before it returns.
// Errors     those of the files and of the source; kCancelled. They name the file.
#pragma once

#include <atomic>
#include <string>

#include "base/cancel_bell.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/result.h"
#include "ckpt/description.h"
#include "ckpt/names.h"
#include "ckpt/tensor_source.h"

namespace keel {

// The progress of a save or a restore; read it from any thread.
struct Progress {
  std::atomic<uint64_t> bytes_done{0};  // of content
  std::atomic<uint64_t> bytes_total{0};
  std::atomic<bool> cancel{false};  // set it, and the work ends with kCancelled
  std::atomic<bool> hurry{false};   // set it to stop spreading the rest over time
  CancelBell bell = {};             // ring it then, in case somebody waits for a store
};

struct WriteOptions {
  int zstd_level = kZstdLevel;
  int compress_threads = 1;
  int write_threads = 1;
  Duration spread{0};            // compresses no sooner than evenly over this time
  bool direct = true;            // bypasses the page cache if the file system can
  Progress* progress = nullptr;  // outlives the call
};

struct ShardSummary {
  uint64_t bytes = 0;          // of the file
  uint64_t content_bytes = 0;  // of the stream
  Duration rested{0};          // idle time, because it would have been too soon
  Digest digest;
};

// More than the file of that shard will have.
uint64_t ShardBytesMax(const ShardName& name, const Description& description);

// Into a file that is empty, and is durable when this has returned Ok.
Result<ShardSummary> WriteShard(File& file, const ShardName& name, const Description& description,
                                TensorSource& source, const WriteOptions& options);

}  // namespace keel
