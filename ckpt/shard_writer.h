// WriteShard: one worker's part of the stream, compressed on its way to a file of its own.
// Promises   on success the file's content is durable (not its name: sync the directory). It uses
//            a few frames of memory per thread, whatever the tensors' size. After an error or a
//            cancellation the file is removed, if possible.
// Does not   commit anything; replace a file (kExists). Guard against a source that changes while
//            it is read: the shard then fails its checks when it is loaded.
// Threads    starts threads of its own and joins them before it returns.
// Errors     those of the files and of the source; kCancelled. They name the file.
#pragma once

#include <atomic>
#include <string>

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

Result<ShardSummary> WriteShard(Files& files, const std::string& path, const ShardName& name,
                                const Description& description, TensorSource& source,
                                const WriteOptions& options);

}  // namespace keel
