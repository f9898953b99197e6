// The order of calls in which no save that begins meanwhile loses anything (FORMAT.md 6).
#include "ckpt/removal.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_helpers.h"
#include "base/object_files.h"
#include "base/text.h"
#include "base/upload_age.h"
#include "ckpt/error_list.h"
#include "ckpt/manifest.h"
#include "ckpt/names.h"

namespace keel {
namespace {

using Kind = StepFile::Kind;

// How often to try a directory in which others add or remove files meanwhile.
constexpr int kTries = 16;

bool IsNotFound(const Error& error) { return error.code == Code::kNotFound; }

bool Refuses(const Result<std::unique_ptr<FileLock>>& lock, Code why) {
  return !lock.ok() && lock.error().code == why;
}

// A file that another process has removed already counts as removed.
Status RemoveIfThere(Files& files, const std::string& path) {
  const Status removed = files.Remove(path);
  return removed.ok() || IsNotFound(removed.error()) ? Ok() : removed;
}

// A lock file that is held stays: its save has just begun.
Status RemoveIfFree(Files& files, const std::string& path) {
  const auto lock = files.Lock(path, "removing what a save left");
  if (lock.ok()) return RemoveIfThere(files, path);
  switch (lock.error().code) {
    case Code::kExists:
    case Code::kNotFound:
    case Code::kNoSpace:  // Lock() would have made it: somebody has removed it
      return Ok();
    default: return lock.error();
  }
}

enum class Turn { kTaken, kOfAnother, kGone };

// Does `act` while nobody else holds the lock, whose file goes with it: it may have been made only
// now. Where there is no room for a lock, or the file system knows none, no save or copy can take
// it either; and room must be made on a full disk. kGone: the directory is not there.
template <class Act>
Result<Turn> UnderLock(Files& files, const std::string& lock_path, const char* doing,
                       const Act& act) {
  const auto lock = files.Lock(lock_path, doing);
  if (Refuses(lock, Code::kExists)) return Turn::kOfAnother;
  if (Refuses(lock, Code::kNotFound)) return Turn::kGone;
  const bool knows_no_locks = Refuses(lock, Code::kInvalid);
  if (!lock.ok() && !knows_no_locks && !Refuses(lock, Code::kNoSpace)) return lock.error();
  const Status done = act();
  if (lock.ok() || knows_no_locks) (void)files.Remove(lock_path);
  KEEL_TRY(done);
  return Turn::kTaken;
}

// Whether a shard still may go, asked while nobody can be at work on it.
using MayGo = std::function<Result<bool>()>;

// A copy has the attempt of what it copies, so its shards may have the names that a dead copy left,
// and that were listed. It holds the first lock of each shard until its manifest is there: so
// either that lock is held, or `may_go` sees the manifest, or the shard is not the copy's. False:
// it stays.
Result<bool> RemoveShard(Files& files, const std::string& dir, const StepFile& file,
                         const MayGo& may_go) {
  bool goes = false;
  const auto remove = [&]() -> Status {
    KEEL_TRY_ASSIGN(goes, may_go());
    return goes ? RemoveIfThere(files, JoinPath(dir, ShardFileName(file.shard))) : Ok();
  };
  KEEL_TRY_ASSIGN(const Turn turn, UnderLock(files, JoinPath(dir, ShardLockName(file.shard)),
                                             "removing what a save left", remove));
  return goes || turn == Turn::kGone;
}

// False: it stays, since somebody works under its name, or has done so meanwhile.
Result<bool> RemoveFile(Files& files, const std::string& dir, const std::string& name,
                        const MayGo& may_go) {
  const StepFile file = ParseStepFile(name);
  if (file.kind == Kind::kShard) return RemoveShard(files, dir, file, may_go);
  const bool is_lock = file.kind == Kind::kShardLock || file.kind == Kind::kCommitLock;
  const std::string path = JoinPath(dir, name);
  KEEL_TRY(is_lock ? RemoveIfFree(files, path) : RemoveIfThere(files, path));
  return true;
}

// Whether the step may still go. It may have been judged long ago.
Result<Removal> JudgeAgain(Files& files, const StepEntry& judged) {
  const auto now = LookAtStep(files, judged.dir);
  if (!now.ok()) {
    if (IsNotFound(now.error())) return Removal::kVanished;
    return now.error();
  }
  if (now->in_progress) return Removal::kBeingWritten;
  if (now->state == judged.state && now->attempt == judged.attempt) {
    return now->pinned ? Removal::kPinned : Removal::kRemoved;
  }
  // Another retention has removed its manifest and goes on.
  const bool is_going = judged.state != StepState::kPartial && now->state == StepState::kPartial;
  return is_going ? Removal::kVanished : Removal::kChanged;
}

// A save may replace a damaged manifest. It does so under this lock, so the manifest removed here
// is the one that was judged.
Result<Removal> RemoveManifest(Files& files, const StepEntry& judged) {
  Removal verdict = Removal::kBeingWritten;
  const auto remove = [&]() -> Status {
    KEEL_TRY_ASSIGN(verdict, JudgeAgain(files, judged));
    const bool goes = verdict == Removal::kRemoved;
    return goes ? RemoveIfThere(files, JoinPath(judged.dir, kManifestName)) : Ok();
  };
  KEEL_TRY_ASSIGN(const Turn turn, UnderLock(files, JoinPath(judged.dir, kCommitLockName),
                                             "removing a checkpoint", remove));
  if (turn == Turn::kGone) return Removal::kVanished;
  if (verdict != Removal::kRemoved) return verdict;
  // Without this, a power loss could bring the manifest back without its shards.
  const Status synced = files.SyncDir(judged.dir);
  if (!synced.ok() && !IsNotFound(synced.error())) return synced.error();
  return Removal::kRemoved;
}

// kChanged: the directory could not be removed because something new is in it.
Result<Removal> RemoveListed(Files& files, const StepEntry& judged,
                             const std::vector<DirEntry>& entries) {
  const MayGo is_uncommitted = [&]() -> Result<bool> {
    KEEL_TRY_ASSIGN(const bool there, Exists(files, JoinPath(judged.dir, kManifestName)));
    return !there;
  };
  for (const DirEntry& entry : entries) {
    const Kind kind = ParseStepFile(entry.name).kind;
    if (kind == Kind::kForeign || kind == Kind::kManifest) continue;
    KEEL_TRY(RemoveFile(files, judged.dir, entry.name, is_uncommitted));
  }
  const Status removed = files.RemoveDir(judged.dir);
  if (!removed.ok() && removed.error().code == Code::kExists) {
    KEEL_TRY_ASSIGN(const auto left, files.List(judged.dir));
    const bool has_foreign = std::any_of(left.begin(), left.end(), [](const DirEntry& entry) {
      return ParseStepFile(entry.name).kind == Kind::kForeign;
    });
    if (has_foreign) return removed.error();
    return Removal::kChanged;
  }
  if (!removed.ok() && !IsNotFound(removed.error())) return removed.error();
  KEEL_TRY(files.SyncDir(ParentDir(judged.dir)));
  return Removal::kRemoved;
}

// --- In a bucket ---

// A step's objects that may go with what was judged: those of its own attempt, and of others those
// that are old. A young shard of another attempt may be of a save that goes on.
struct Doomed {
  std::vector<std::string> keys;
  uint64_t bytes = 0;
  std::string foreign;   // one that is not ours, and stays
};

Result<Doomed> FindDoomed(const BucketPlace& step, const StepEntry& judged, bool with_own) {
  const std::string prefix = step.key + "/";
  KEEL_TRY_ASSIGN(const ObjectListing listing, step.bucket->List(prefix, Objects::Depth::kAll));
  const int64_t now_ns = step.bucket->StoreNanos();
  Doomed doomed;
  // What was put aside for a repair goes with its step, and not before.
  const bool is_put_aside =
      std::any_of(listing.objects.begin(), listing.objects.end(), [&](const ObjectInfo& object) {
        return ParseStepFile(object.key.substr(prefix.size())).kind == Kind::kManifestTemp;
      });
  if (is_put_aside && !with_own) return doomed;
  for (const ObjectInfo& object : listing.objects) {
    const std::string name = object.key.substr(prefix.size());
    if (name.empty()) {   // what a console makes for a folder goes with the step
      if (with_own) doomed.keys.push_back(object.key);
      continue;
    }
    const StepFile file = ParseStepFile(name);
    if (file.kind == Kind::kForeign) doomed.foreign = name;
    if (file.kind == Kind::kForeign || file.kind == Kind::kManifest || file.kind == Kind::kPin) {
      continue;
    }
    const bool is_own = file.kind == Kind::kShard && file.shard.attempt == judged.attempt;
    const auto age = std::chrono::nanoseconds(now_ns - object.changed_at_ns);
    if (!(is_own ? with_own : age >= kBucketQuiet)) continue;
    doomed.keys.push_back(object.key);
    doomed.bytes += object.bytes;
  }
  return doomed;
}

// The list comes first: what is made after it stays.
Result<Removal> RemoveFromBucket(Files& files, const BucketPlace& step, const StepEntry& judged) {
  KEEL_TRY_ASSIGN(const Doomed doomed, FindDoomed(step, judged, /*with_own=*/true));
  KEEL_TRY_ASSIGN(const Removal verdict, JudgeAgain(files, judged));
  if (verdict != Removal::kRemoved) return verdict;
  // What had none may have been committed since, by others than those whose shards are old.
  if (judged.state != StepState::kPartial) {
    KEEL_TRY(step.bucket->Remove({step.key + "/" + std::string(kManifestName)}));
  }
  if (!doomed.keys.empty()) KEEL_TRY(step.bucket->Remove(doomed.keys));
  if (doomed.foreign.empty()) return Removal::kRemoved;
  return Error{Code::kExists, "removing " + judged.dir + ": it holds " + Shown(doomed.foreign) +
                                  ", which is no part of a checkpoint: move that away"};
}

Result<uint64_t> SweepInBucket(Files& files, const BucketPlace& step, const StepEntry& judged,
                               bool dry_run) {
  KEEL_TRY_ASSIGN(const Doomed doomed, FindDoomed(step, judged, /*with_own=*/false));
  if (doomed.keys.empty()) return uint64_t{0};
  KEEL_TRY_ASSIGN(const Removal verdict, JudgeAgain(files, judged));
  if (verdict != Removal::kRemoved && verdict != Removal::kPinned) return uint64_t{0};
  if (!dry_run) KEEL_TRY(step.bucket->Remove(doomed.keys));
  return doomed.bytes;
}

Result<Removal> TryToRemove(Files& files, const StepEntry& judged) {
  KEEL_TRY_ASSIGN(const BucketPlace step, files.Bucket(judged.dir));
  if (step.bucket != nullptr) return RemoveFromBucket(files, step, judged);
  // The listing comes before the look at the locks: a living save holds its lock before it makes a
  // file, so no listed file belongs to a save that began after the look.
  KEEL_TRY_ASSIGN(const auto entries, files.List(judged.dir));
  const bool has_manifest = std::any_of(entries.begin(), entries.end(), [](const DirEntry& entry) {
    return entry.name == kManifestName;
  });
  KEEL_TRY_ASSIGN(const Removal verdict, has_manifest ? RemoveManifest(files, judged)
                                                      : JudgeAgain(files, judged));
  if (verdict != Removal::kRemoved) return verdict;
  return RemoveListed(files, judged, entries);
}

}  // namespace

Result<Removal> RemoveCheckpoint(Files& files, const StepEntry& judged) {
  StepEntry left = judged;
  for (int tries = 1;; ++tries) {
    const auto removal = TryToRemove(files, left);
    if (!removal.ok() && IsNotFound(removal.error())) return Removal::kVanished;
    if (!removal.ok() || *removal != Removal::kChanged || tries == kTries) return removal;
    // Without its manifest it is a partial step.
    const auto now = LookAtStep(files, judged.dir);
    if (!now.ok() && IsNotFound(now.error())) return Removal::kVanished;
    if (!now.ok()) return now.error();
    if (now->in_progress) return Removal::kBeingWritten;
    if (now->state != StepState::kPartial) return Removal::kChanged;
    left = *now;
  }
}

Result<uint64_t> SweepCheckpoint(Files& files, const StepEntry& judged, bool dry_run) {
  KEEL_TRY_ASSIGN(const BucketPlace step, files.Bucket(judged.dir));
  if (step.bucket != nullptr) return SweepInBucket(files, step, judged, dry_run);
  const auto entries = files.List(judged.dir);
  if (!entries.ok() && IsNotFound(entries.error())) return uint64_t{0};
  if (!entries.ok()) return entries.error();
  std::vector<DirEntry> doomed;
  for (const DirEntry& entry : *entries) {
    const StepFile file = ParseStepFile(entry.name);
    const bool is_of_attempt = file.kind == Kind::kShard || file.kind == Kind::kManifestTemp ||
                               file.kind == Kind::kShardLock || file.kind == Kind::kCommitLock;
    const bool is_kept = file.kind == Kind::kShard && file.shard.attempt == judged.attempt;
    if (is_of_attempt && !is_kept) doomed.push_back(entry);
  }
  if (doomed.empty()) return uint64_t{0};
  // The step may have been removed since it was judged, and another save may have begun in it.
  KEEL_TRY_ASSIGN(const Removal verdict, JudgeAgain(files, judged));
  const bool is_same = verdict == Removal::kRemoved || verdict == Removal::kPinned;
  const MayGo is_of_another = [&]() -> Result<bool> {
    const Result<Manifest> manifest = ReadManifest(files, judged.dir);
    return manifest.ok() && manifest->attempt == judged.attempt;
  };
  uint64_t freed = 0;
  for (const DirEntry& entry : is_same ? doomed : std::vector<DirEntry>{}) {
    const Result<FileInfo> info = files.Stat(JoinPath(judged.dir, entry.name));
    bool goes = true;
    if (!dry_run) {
      KEEL_TRY_ASSIGN(goes, RemoveFile(files, judged.dir, entry.name, is_of_another));
    }
    if (info.ok() && goes) freed += info->bytes;
  }
  return freed;
}

Result<std::vector<UnfinishedObject>> UnfinishedShards(Files& files, const std::string& root) {
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(root));
  if (place.bucket == nullptr) return std::vector<UnfinishedObject>();
  const std::string prefix = PrefixOf(place);
  KEEL_TRY_ASSIGN(std::vector<UnfinishedObject> unfinished, place.bucket->Unfinished(prefix));
  std::erase_if(unfinished, [&](const UnfinishedObject& one) {
    const size_t slash = one.key.find('/', prefix.size());
    return slash == std::string::npos ||
           !ParseStepDirName(one.key.substr(prefix.size(), slash - prefix.size())).has_value() ||
           ParseStepFile(one.key.substr(slash + 1)).kind != Kind::kShard;
  });
  return unfinished;
}

Status DiscardDeadUploads(Files& files, const std::string& root) {
  KEEL_TRY_ASSIGN(const std::vector<UnfinishedObject> unfinished, UnfinishedShards(files, root));
  if (unfinished.empty()) return Ok();
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(root));
  ErrorList errors;
  for (const UnfinishedObject& one : unfinished) {
    const Status discarded = DiscardIfDead(*place.bucket, one);
    if (!discarded.ok()) errors.Add(discarded.error());
  }
  return errors.ToStatus("discarding unfinished uploads below " + root);
}

void SweepDeadAttempts(Files& files, const std::string& step_dir) {
  const auto saved = LookAtStep(files, step_dir);
  const bool is_ours = saved.ok() && saved->state == StepState::kComplete && !saved->in_progress;
  if (is_ours) (void)SweepCheckpoint(files, *saved, /*dry_run=*/false);
}

}  // namespace keel
