// Restore: brings a checkpoint's tensors into the caller's memory.
// Promises   the tensors asked for and those in the checkpoint must be the same, by name, dtype
//            and shape, in both directions; all differences are reported at once. With Into::kLive
//            the caller's memory is touched only after all bytes that will go into it were
//            verified: a first pass decodes and checks everything, a second one decodes and checks
//            again, then copies. It holds a few frames per thread in memory.
// Does not   undo: if a byte goes bad between the passes, the error says that memory was changed.
// Threads    starts threads of its own and joins them.
// Errors     kInvalid: tensors differ; kCorrupt, naming file, frame and tensor; kCancelled.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ckpt/checkpoint.h"
#include "ckpt/frame_scan.h"

namespace keel {

struct RestoreTarget {
  TensorSpec spec;
  std::span<std::byte> into;
};

enum class Into {
  kLive,   // holds what must stay if the restore fails: verified whole before the first change
  kFresh,  // holds nothing yet: one pass; after an error its content is undefined
};

struct RestoreOptions {
  // Empty: all tensors. Otherwise only those whose name matches one of these patterns
  // (ckpt/glob.h), and only these must be covered.
  std::vector<std::string> only = {};
  Into into = Into::kLive;
  // The share of the frames to read; the others in a group read the rest (Layout::PartOf).
  uint32_t part = 0;
  uint32_t parts = 1;
  int threads = 2;
  Progress* progress = nullptr;  // outlives the call; counts both passes
};

// Bytes of a target that were filled, when only a share was read.
struct FilledRange {
  size_t target = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct RestoreReport {
  uint64_t bytes = 0;   // put into targets
  uint64_t frames = 0;  // read, once each
  std::vector<FilledRange> filled;  // by target, then offset; neighbours joined
};

Result<RestoreReport> Restore(const Checkpoint& checkpoint,
                              const std::vector<RestoreTarget>& targets,
                              const RestoreOptions& options);

// Whether memory holds what the checkpoint holds, by the manifest's digests, after a group has
// exchanged its shares. Lists all that differ.
Status CheckRestored(const Checkpoint& checkpoint, const std::vector<RestoreTarget>& targets);

}  // namespace keel
