// Retention: which checkpoints may go.
// Promises   the newest complete checkpoint always stays, as does every pinned one, every one that
//            a live process is writing, and every one of a newer version. Others may save,
//            remove and look in the directory meanwhile (ckpt/removal.h).
// Does not   touch files whose names are not ours: a directory with such a file stays.
// Threads    DecideRetention() is pure; ApplyRetention(): any.
// Errors     those of Files. After an error all of the doomed are gone that could go; nothing else
//            is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/catalog.h"

namespace keel {

struct RetentionPolicy {
  uint64_t keep_last = 3;   // complete ones; at least 1 is kept
  uint64_t keep_every = 0;  // steps that are multiples of this stay for ever; 0: none
  enum class Partial {
    kKeep,
    kRemoveOlder,  // those older than the newest complete one
    kRemoveAll,    // all that no live process is writing: they can serve `keel repair` no more
  };
  Partial partial = Partial::kRemoveOlder;
  bool remove_damaged = false;  // treat damaged ones as partial ones
};

struct RetentionVerdict {
  uint64_t step = 0;
  std::string dir;
  bool remove = false;
  std::string reason;  // "newest complete", "one of the last 3", "step is a multiple of 1000" ...
  bool vanished = false;  // it was to be removed, and somebody else has done that
};

// One verdict for each entry, in their order. `entries` as from ListSteps().
std::vector<RetentionVerdict> DecideRetention(const std::vector<StepEntry>& entries,
                                              const RetentionPolicy& policy);

struct RetentionReport {
  std::vector<RetentionVerdict> verdicts;
  uint64_t bytes_freed = 0;
};

// Lists, decides and removes; the verdicts then say what became of each. Removes also what dead
// attempts left in complete steps. With `dry_run` bytes_freed says what would go.
Result<RetentionReport> ApplyRetention(Files& files, const std::string& root,
                                       const RetentionPolicy& policy, bool dry_run = false);

}  // namespace keel
