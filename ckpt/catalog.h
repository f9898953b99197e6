// Catalog: which checkpoints a directory holds, and which of them are whole.
// Promises   a step counts as complete when its manifest is valid and every shard it names is there
//            with the size it names; otherwise the reason is given in words.
// Does not   read the content of shards: `keel verify` and every load do.
// Threads    any. Errors: those of Files; a damaged step is an entry, not an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/checkpoint.h"

namespace keel {

enum class StepState {
  kComplete,
  kPartial,  // no manifest: a save in progress, or one that died
  kDamaged,  // a manifest that is not valid, or shards missing or of another size
  kNewer,    // written by a newer version
};
// "complete", "partial", "damaged", "newer".
std::string_view StepStateName(StepState state);

struct StepEntry {
  uint64_t step = 0;
  std::string dir;
  StepState state = StepState::kPartial;
  std::string reason;          // why it is not complete; empty if it is
  bool unreadable = false;     // its place did not return it
  bool unreached = false;      // since its store or file system could not be reached
  bool pinned = false;
  bool put_aside = false;      // in a bucket: a job has taken it out of the way (ckpt/put_aside.h)
  // A live process holds a lock of one of its attempts; in a bucket, where nobody holds one: it has
  // no manifest, and something of it is young (base/upload_age.h), or an upload that goes on.
  bool in_progress = false;
  uint64_t stored_bytes = 0;   // of all files in its directory
  // For complete ones:
  std::string attempt;
  uint64_t content_bytes = 0;
  uint32_t writers = 0;
  int64_t saved_at_ns = 0;
  std::string repair;          // what a repair noted about itself; empty: it is none
};

// What is wrong with each of them, where none is complete: kNotFound.
Error NoneComplete(const std::string& root, const std::vector<StepEntry>& steps);

// Whether what could not be read for such an error may be whole all the same: a disk that did not
// return it, a store that could not be reached.
bool MayBeSound(Code code);
// Whether the place that gave this error, a bucket or a file system, may answer another time: then
// nothing follows from the error, and a job that needs the place is started again.
bool MayAnswerLater(const Error& error, bool is_in_bucket);

// By step, from the lowest. Other directories are ignored. kNotFound: no such directory.
Result<std::vector<StepEntry>> ListSteps(Files& files, const std::string& root);
// One step's directory, whatever its name; `step` is 0 if neither name nor manifest tells it.
Result<StepEntry> LookAtStep(Files& files, const std::string& step_dir);

// The newest complete one. kNotFound says what there is instead.
Result<StepEntry> NewestComplete(Files& files, const std::string& root);

// The directory of the checkpoint that `text` names: a step's directory itself, "ROOT" or
// "ROOT@latest" (the newest complete one), "ROOT@1200".
Result<std::string> ResolveCheckpoint(Files& files, const std::string& text);

// kCorrupt where the directory has the name of another step than `step`, that of its manifest; also
// where it was put aside under such a name.
Status CheckDirName(const std::string& step_dir, uint64_t step);
// Opens the checkpoint in `dir`, which `text` names, and looks whether it is the one that is meant:
// its own directory is taken under any name, but "ROOT@1200" means that step.
Result<std::unique_ptr<Checkpoint>> OpenNamed(Files& files, const std::string& dir,
                                              const std::string& text);

// If `text` names one step (its own directory, "ROOT@1200", "ROOT@latest"), the directory in which
// it lies; empty if it names a directory of steps, or nothing that exists.
std::optional<std::string> RootOfStep(Files& files, const std::string& text);

// Opens the checkpoint that `text` names. If another process removes it in the meantime, another
// one is opened if `text` allows that, else kNotFound.
Result<std::unique_ptr<Checkpoint>> OpenCheckpoint(Files& files, const std::string& text);

// Whether a step that was committed is certainly no longer so: its manifest, which is removed
// first, is gone.
bool IsRemoved(Files& files, const std::string& step_dir);

// After its manifest was put where no locks keep others from the shards: they may have been taken
// for those of a dead save while their writer stood still. kCorrupt: then they are gone; kIo: the
// store does not say.
Status CheckIsThere(Files& files, const std::string& step_dir, const std::string& attempt);

// Pinned steps are never deleted by retention.
Status Pin(Files& files, const std::string& step_dir);
Status Unpin(Files& files, const std::string& step_dir);

}  // namespace keel
