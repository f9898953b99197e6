// Retention: decides which checkpoints may go, and removes them.
// Promises   the newest complete checkpoint always stays, as does every pinned one, every one that
//            a live process is writing, and every one of a newer version. Others may save,
//            remove and look in the directory meanwhile (ckpt/removal.h).
// Does not   touch files whose names are not ours: a directory with such a file stays.
// Threads    DecideRetention() is pure; ApplyRetention(): any.
// Errors     those of Files. After an error every doomed checkpoint that could be removed is gone,
//            and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/catalog.h"

namespace keel {

struct RetentionPolicy {
  uint64_t keep_last = 3;   // complete ones; at least 1 is kept
  uint64_t keep_every = 0;  // the first at or after each multiple of this stays for ever; 0: none
  enum class Partial {
    kKeep,
    kRemoveOlder,  // those older than the newest complete one
    kRemoveAll,    // all that no live process writes: `keel repair` can no longer use them
  };
  Partial partial = Partial::kRemoveOlder;
  bool remove_damaged = false;  // treat damaged ones as partial ones
  std::optional<uint64_t> needed = {};  // a step that is being copied elsewhere
  // The step that a running job has just made. What is newer was passed over when it resumed, since
  // it could not be read: that stays, and nothing has to go because of it.
  std::optional<uint64_t> made = {};
};

struct RetentionVerdict {
  uint64_t step = 0;
  std::string dir;
  bool remove = false;
  std::string reason;  // "newest complete", "one of the last 3", "the first from step 2000 on" ...
  bool vanished = false;  // it was to be removed, but another process has done that
};

// The multiple of `every` for which a step is kept for ever: no complete one lies between the two.
// (Saves that wait for the one before come late, and those by the clock at any step.) Nothing: it
// is not kept so. `complete`: steps, rising.
std::optional<uint64_t> KeptFor(uint64_t step, const std::vector<uint64_t>& complete,
                                uint64_t every);

// One verdict for each entry, in their order. `entries` as from ListSteps().
std::vector<RetentionVerdict> DecideRetention(const std::vector<StepEntry>& entries,
                                              const RetentionPolicy& policy);

struct RetentionReport {
  std::vector<RetentionVerdict> verdicts;
  uint64_t bytes_freed = 0;
};

// Lists, decides and removes; the verdicts then say what became of each. It also removes what dead
// attempts left in complete steps. With `dry_run` bytes_freed says what would go. Once `has_to_end`
// it ends with the next one that is removed, so that what is there does not grow from run to run.
Result<RetentionReport> ApplyRetention(Files& files, const std::string& root,
                                       const RetentionPolicy& policy, bool dry_run = false,
                                       const std::function<bool()>& has_to_end = {});

}  // namespace keel
