// Looks at step directories, and chooses one.
#include "ckpt/catalog.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/file_helpers.h"
#include "base/object_files.h"
#include "base/text.h"
#include "base/upload_age.h"
#include "ckpt/names.h"

namespace keel {
namespace {

// How often to look again at what others change meanwhile.
constexpr int kTries = 16;

std::string BaseName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

struct Contents {
  std::set<ShardName> shards;
  std::optional<std::map<std::string, uint64_t>> sizes;   // of its files, where one list tells all
  bool has_manifest = false;
  bool pinned = false;
  bool put_aside = false;
  bool in_progress = false;
  uint64_t bytes = 0;
};

// `objects`: those of one step, whose keys begin with `prefix`. What is young may be of a save that
// goes on.
Contents ContentsOf(const std::vector<ObjectInfo>& objects, const std::string& prefix,
                    int64_t now_ns) {
  Contents contents;
  contents.sizes.emplace();
  int64_t changed_at_ns = 0;
  for (const ObjectInfo& object : objects) {
    const std::string name = object.key.substr(prefix.size());
    contents.bytes += object.bytes;
    (*contents.sizes)[name] = object.bytes;
    const StepFile file = ParseStepFile(name);
    if (file.kind == StepFile::Kind::kManifest) contents.has_manifest = true;
    if (file.kind == StepFile::Kind::kPin) contents.pinned = true;
    if (file.kind == StepFile::Kind::kManifestTemp) contents.put_aside = true;
    if (file.kind != StepFile::Kind::kShard) continue;
    contents.shards.insert(file.shard);
    changed_at_ns = std::max(changed_at_ns, object.changed_at_ns);
  }
  const auto age = std::chrono::nanoseconds(now_ns - changed_at_ns);
  contents.in_progress = !contents.has_manifest && !contents.put_aside && age < kBucketQuiet;
  return contents;
}

Result<Contents> ListStep(const BucketPlace& place, const std::string& dir) {
  const std::string prefix = place.key + "/";
  KEEL_TRY_ASSIGN(const ObjectListing listing,
                  place.bucket->List(prefix, Objects::Depth::kAll));
  if (listing.objects.empty()) return Error{Code::kNotFound, dir + " is not there"};
  return ContentsOf(listing.objects, prefix, place.bucket->StoreNanos());
}

// Whether somebody goes on with a shard of the step. Not all may list uploads, and not all stores
// have such a list: there only the age of shards tells.
bool IsUploadedTo(const BucketPlace& step) {
  const std::string prefix = step.key + "/";
  const auto unfinished = step.bucket->Unfinished(prefix);
  if (!unfinished.ok()) return MayBeSound(unfinished.error().code);
  return std::any_of(unfinished->begin(), unfinished->end(), [&](const UnfinishedObject& one) {
    if (ParseStepFile(one.key.substr(prefix.size())).kind != StepFile::Kind::kShard) return false;
    const Result<bool> is_dead = IsDead(*step.bucket, one);
    return is_dead.ok() ? !*is_dead : MayBeSound(is_dead.error().code);
  });
}

// Whether nothing of it tells that somebody is still writing.
bool SeemsDead(const Contents& contents) {
  return !contents.has_manifest && !contents.put_aside && !contents.in_progress;
}

Result<Contents> LookIntoBucket(const BucketPlace& place, const std::string& dir) {
  KEEL_TRY_ASSIGN(const Contents contents, ListStep(place, dir));
  if (!SeemsDead(contents)) return contents;
  const bool is_uploaded_to = IsUploadedTo(place);
  // An upload that has ended since the first list is a young shard in the second.
  KEEL_TRY_ASSIGN(Contents again, ListStep(place, dir));
  again.in_progress = again.in_progress || (SeemsDead(again) && is_uploaded_to);
  return again;
}

Result<Contents> LookInto(Files& files, const std::string& dir) {
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(dir));
  if (place.bucket != nullptr) return LookIntoBucket(place, dir);
  Contents contents;
  KEEL_TRY_ASSIGN(const auto entries, files.List(dir));
  for (const DirEntry& entry : entries) {
    const std::string path = JoinPath(dir, entry.name);
    const Result<FileInfo> info = files.Stat(path);
    if (info.ok()) contents.bytes += info->bytes;  // it may be gone by now, if a save has ended
    const StepFile file = ParseStepFile(entry.name);
    switch (file.kind) {
      case StepFile::Kind::kManifest: contents.has_manifest = true; break;
      case StepFile::Kind::kPin: contents.pinned = true; break;
      case StepFile::Kind::kShard: contents.shards.insert(file.shard); break;
      case StepFile::Kind::kShardLock: {
        const Result<bool> held = files.IsLocked(path);
        contents.in_progress = contents.in_progress || !held.ok() || *held;
        break;
      }
      case StepFile::Kind::kManifestTemp:
      case StepFile::Kind::kPinTemp:
      case StepFile::Kind::kCommitLock:
      case StepFile::Kind::kForeign: break;
    }
  }
  return contents;
}

std::string PartialReason(const Contents& contents) {
  std::string reason = "no manifest";
  if (contents.put_aside) return "damaged, and put aside by a job";
  if (contents.in_progress) return reason + ": a save is in progress";
  if (contents.shards.empty()) return reason + ", no shard: a save that failed or died";
  std::set<std::string> attempts;
  for (const ShardName& shard : contents.shards) attempts.insert(shard.attempt);
  return reason + ": " + std::to_string(contents.shards.size()) + " of " +
         std::to_string(contents.shards.begin()->parts) + " shards" +
         (attempts.size() > 1 ? " in " + std::to_string(attempts.size()) + " attempts" : "") +
         ", of a save that failed or died";
}

// Whether the shards have the sizes that the manifest gives.
Status CheckShards(Files& files, const std::string& dir, const Contents& contents,
                   const Manifest& manifest) {
  const auto size_of = [&](const std::string& file) -> Result<uint64_t> {
    const std::string path = JoinPath(dir, file);
    if (contents.sizes) {
      const auto found = contents.sizes->find(file);
      if (found != contents.sizes->end()) return found->second;
      return Error{Code::kNotFound, path + " is not there"};
    }
    KEEL_TRY_ASSIGN(const FileInfo info, files.Stat(path));
    return info.bytes;
  };
  for (const ManifestShard& shard : manifest.shards) {
    KEEL_TRY_ASSIGN(const uint64_t bytes, size_of(shard.file));
    if (bytes != shard.bytes) {
      return Error{Code::kCorrupt, shard.file + " has " + std::to_string(bytes) +
                                       " bytes instead of " + std::to_string(shard.bytes)};
    }
  }
  return Ok();
}

void Judge(Files& files, const Contents& contents, const Result<Manifest>& manifest,
           StepEntry* entry) {
  if (!manifest.ok()) {
    const bool newer = manifest.error().code == Code::kInvalid &&
                       manifest.error().message.find("newer Evenkeel") != std::string::npos;
    entry->state = newer ? StepState::kNewer : StepState::kDamaged;
    entry->reason = manifest.error().message;
    const Code code = manifest.error().code;
    const bool is_refused = contents.sizes.has_value() && code == Code::kInvalid;   // by a store
    entry->unreadable = MayBeSound(code) || is_refused;
    entry->unreached = MayAnswerLater(manifest.error(), contents.sizes.has_value());
    return;
  }
  entry->step = manifest->description.step;
  entry->attempt = manifest->attempt;
  entry->content_bytes = manifest->description.layout.tensor_bytes();
  entry->writers = static_cast<uint32_t>(manifest->shards.size());
  entry->saved_at_ns = manifest->saved_at_ns;
  const auto& user = manifest->description.user;
  const auto repair = user.find(std::string(kRepairKey));
  if (repair != user.end()) entry->repair = repair->second;
  const Status shards = CheckShards(files, entry->dir, contents, *manifest);
  entry->state = shards.ok() ? StepState::kComplete : StepState::kDamaged;
  if (shards.ok()) return;
  entry->reason = shards.error().message;
  entry->unreadable = MayBeSound(shards.error().code);
}

std::string OfAnotherStep(uint64_t step) {
  return "its manifest is of step " + std::to_string(step);
}

StepEntry EntryOf(Files& files, const std::string& step_dir, const Contents& contents) {
  StepEntry entry;
  entry.dir = step_dir;
  const auto step = ParseStepDirName(BaseName(step_dir));
  entry.step = step.value_or(0);
  entry.pinned = contents.pinned;
  entry.put_aside = contents.put_aside;
  entry.in_progress = contents.in_progress;
  entry.stored_bytes = contents.bytes;
  if (!contents.has_manifest) {
    entry.reason = PartialReason(contents);
    return entry;
  }
  Judge(files, contents, ReadManifest(files, step_dir), &entry);
  if (step.has_value() && entry.step != *step) {
    entry.state = StepState::kDamaged;
    entry.reason = OfAnotherStep(entry.step);
    entry.step = *step;
  }
  return entry;
}

Result<StepEntry> LookOnce(Files& files, const std::string& step_dir) {
  KEEL_TRY_ASSIGN(const Contents contents, LookInto(files, step_dir));
  return EntryOf(files, step_dir, contents);
}

// One list tells of all steps; only manifests are read besides.
Result<std::vector<StepEntry>> ListBucket(Files& files, const BucketPlace& place,
                                          const std::string& root) {
  const std::string prefix = PrefixOf(place);
  KEEL_TRY_ASSIGN(const ObjectListing listing, place.bucket->List(prefix, Objects::Depth::kAll));
  if (listing.objects.empty()) return Error{Code::kNotFound, root + " is not there"};
  std::map<uint64_t, std::vector<ObjectInfo>> objects;
  for (const ObjectInfo& object : listing.objects) {
    const size_t slash = object.key.find('/', prefix.size());
    if (slash == std::string::npos) continue;
    const auto step = ParseStepDirName(object.key.substr(prefix.size(), slash - prefix.size()));
    if (step.has_value()) objects[*step].push_back(object);
  }
  std::vector<StepEntry> steps;
  for (const auto& [step, of_step] : objects) {
    const std::string name = StepDirName(step), dir = JoinPath(root, name);
    const Contents contents =
        ContentsOf(of_step, prefix + name + "/", place.bucket->StoreNanos());
    steps.push_back(EntryOf(files, dir, contents));
    // It may have been removed since the list, or there is an upload that goes on.
    if (steps.back().state != StepState::kDamaged && !SeemsDead(contents)) continue;
    auto again = LookAtStep(files, dir);
    if (!again.ok() && again.error().code != Code::kNotFound) return again.error();
    steps.pop_back();
    if (again.ok()) steps.push_back(std::move(*again));
  }
  return steps;
}

// Where the listing does not tell what an entry is, and nobody can look now, it is no less a step.
bool MayBeDirectory(Files& files, const std::string& root, const DirEntry& entry) {
  if (entry.kind != FileKind::kOther) return entry.kind == FileKind::kDirectory;
  const Result<FileInfo> info = files.Stat(JoinPath(root, entry.name));
  return info.ok() ? info->kind == FileKind::kDirectory : info.error().code != Code::kNotFound;
}

// `is_stable` becomes false if a step has been removed since the listing: the newer step that
// replaced it may have come since then, too.
Result<std::vector<StepEntry>> ListOnce(Files& files, const std::string& root,
                                        bool* is_stable) {
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(root));
  if (place.bucket != nullptr) return ListBucket(files, place, root);
  KEEL_TRY_ASSIGN(const auto names, files.List(root));
  std::vector<StepEntry> steps;
  for (const DirEntry& name : names) {
    if (!ParseStepDirName(name.name).has_value() || !MayBeDirectory(files, root, name)) continue;
    auto entry = LookAtStep(files, JoinPath(root, name.name));
    if (entry.ok()) {
      steps.push_back(std::move(*entry));
    } else if (entry.error().code == Code::kNotFound) {
      *is_stable = false;
    } else if (entry.error().code == Code::kIo) {   // the others are none the worse for it
      StepEntry unread;
      unread.step = *ParseStepDirName(name.name);
      unread.dir = JoinPath(root, name.name);
      unread.state = StepState::kDamaged;
      unread.reason = entry.error().message;
      unread.unreadable = true;
      unread.unreached = entry.error().may_pass;
      steps.push_back(std::move(unread));
    } else {
      return entry.error();
    }
  }
  std::sort(steps.begin(), steps.end(),
            [](const StepEntry& a, const StepEntry& b) { return a.step < b.step; });
  return steps;
}

}  // namespace

std::string_view StepStateName(StepState state) {
  switch (state) {
    case StepState::kComplete: return "complete";
    case StepState::kPartial: return "partial";
    case StepState::kDamaged: return "damaged";
    case StepState::kNewer: return "newer";
  }
  return "unknown";
}

Error NoneComplete(const std::string& root, const std::vector<StepEntry>& steps) {
  std::string message = "no complete checkpoint in " + root;
  for (const StepEntry& entry : steps) {
    message += "\n  step " + std::to_string(entry.step) + ": " +
               std::string(StepStateName(entry.state)) + ", " + entry.reason;
  }
  return {Code::kNotFound, message};
}

bool MayBeSound(Code code) {
  return code == Code::kIo || code == Code::kTimeout || code == Code::kPeerLost ||
         code == Code::kCancelled;
}

bool MayAnswerLater(const Error& error, bool is_in_bucket) {
  return error.may_pass || (is_in_bucket && MayBeSound(error.code));
}

Result<StepEntry> LookAtStep(Files& files, const std::string& step_dir) {
  for (int tries = 1;; ++tries) {
    KEEL_TRY_ASSIGN(StepEntry entry, LookOnce(files, step_dir));
    if (entry.state != StepState::kDamaged || tries == kTries) return entry;
    // Retention removes the manifest first: what is missing with it is being removed, not damaged.
    if (!IsRemoved(files, step_dir)) return entry;
  }
}

Result<std::vector<StepEntry>> ListSteps(Files& files, const std::string& root) {
  for (int tries = 1;; ++tries) {
    bool is_stable = true;
    KEEL_TRY_ASSIGN(std::vector<StepEntry> steps, ListOnce(files, root, &is_stable));
    if (is_stable || tries == kTries) return steps;
  }
}

Result<StepEntry> NewestComplete(Files& files, const std::string& root) {
  std::vector<StepEntry> before;
  for (int tries = 1;; ++tries) {
    KEEL_TRY_ASSIGN(std::vector<StepEntry> steps, ListSteps(files, root));
    for (auto entry = steps.rbegin(); entry != steps.rend(); ++entry) {
      if (entry->state == StepState::kComplete) return *entry;
    }
    // The only step may have been removed after a newer one came, which was not listed yet.
    const bool is_stable = std::equal(
        steps.begin(), steps.end(), before.begin(), before.end(),
        [](const StepEntry& a, const StepEntry& b) { return a.step == b.step; });
    if (steps.empty() || (tries > 1 && is_stable) || tries == kTries) {
      return NoneComplete(root, steps);
    }
    before = std::move(steps);
  }
}

Result<std::string> ResolveCheckpoint(Files& files, const std::string& text) {
  const size_t at = text.rfind('@');
  const Result<bool> exists = Exists(files, text);
  // "s3://bucket@1200" names no bucket, but a step of one.
  const bool is_no_path = !exists.ok() && exists.error().code == Code::kInvalid;
  if (!exists.ok() && !(is_no_path && at != std::string::npos)) return exists.error();
  const bool is_dir = exists.ok() && *exists;
  if (is_dir || at == std::string::npos) {
    KEEL_TRY_ASSIGN(const bool has_manifest, Exists(files, JoinPath(text, kManifestName)));
    if (has_manifest || ParseStepDirName(BaseName(text)).has_value()) return text;
    KEEL_TRY_ASSIGN(const StepEntry newest, NewestComplete(files, text));
    return newest.dir;
  }
  const std::string root = text.substr(0, at);
  const std::string which = text.substr(at + 1);
  if (which == "latest") {
    KEEL_TRY_ASSIGN(const StepEntry newest, NewestComplete(files, root));
    return newest.dir;
  }
  const Result<int64_t> step = ParseInteger(which);
  if (!step.ok() || *step < 0) {
    return Error{Code::kInvalid, Shown(text) + ": after '@' a step or 'latest' is expected"};
  }
  const std::string dir = JoinPath(root, StepDirName(static_cast<uint64_t>(*step)));
  KEEL_TRY_ASSIGN(const bool there, Exists(files, dir));
  if (there) return dir;
  return Error{Code::kNotFound, "no step " + which + " in " + root};
}

Status CheckDirName(const std::string& step_dir, uint64_t step) {
  if (StepOfDirName(BaseName(step_dir)).value_or(step) == step) return Ok();
  return Error{Code::kCorrupt, OfAnotherStep(step)};
}

Result<std::unique_ptr<Checkpoint>> OpenNamed(Files& files, const std::string& dir,
                                              const std::string& text) {
  KEEL_TRY_ASSIGN(auto checkpoint, Checkpoint::Open(files, dir));
  if (dir == text) return checkpoint;
  const Status named = CheckDirName(dir, checkpoint->manifest().description.step);
  if (!named.ok()) return named.error().Doing("checkpoint " + dir);
  return checkpoint;
}

std::optional<std::string> RootOfStep(Files& files, const std::string& text) {
  const auto info = files.Stat(text);
  if (!info.ok()) {
    const size_t at = text.rfind('@');
    if (at == std::string::npos || !files.Stat(text.substr(0, at)).ok()) return std::nullopt;
    return text.substr(0, at);
  }
  const auto manifest = files.Stat(JoinPath(text, kManifestName));
  const bool is_step = manifest.ok() || ParseStepDirName(BaseName(text)).has_value();
  if (info->kind != FileKind::kDirectory || !is_step) return std::nullopt;
  const std::string last = BaseName(text);
  return last == "." || last == ".." ? JoinPath(text, "..") : ParentDir(text);
}

bool IsRemoved(Files& files, const std::string& step_dir) {
  const auto has_manifest = Exists(files, JoinPath(step_dir, kManifestName));
  return has_manifest.ok() && !*has_manifest;
}

Result<std::unique_ptr<Checkpoint>> OpenCheckpoint(Files& files, const std::string& text) {
  for (int tries = 1;; ++tries) {
    KEEL_TRY_ASSIGN(const std::string dir, ResolveCheckpoint(files, text));
    const bool was_removed = IsRemoved(files, dir);
    auto checkpoint = OpenNamed(files, dir, text);
    if (checkpoint.ok() || !IsRemoved(files, dir)) return checkpoint;
    KEEL_TRY_ASSIGN(const std::string next, ResolveCheckpoint(files, text));
    if (next == dir || tries == kTries) {
      if (was_removed) return checkpoint;  // as far as we know it never existed
      return Error{Code::kNotFound, dir + " was removed while it was opened"};
    }
  }
}

Status CheckIsThere(Files& files, const std::string& step_dir, const std::string& attempt) {
  KEEL_TRY_ASSIGN(const StepEntry there, LookAtStep(files, step_dir));
  if (there.state == StepState::kComplete && there.attempt == attempt) return Ok();
  if (there.unreadable) {
    return Error{Code::kIo, "its manifest is in place, and whether the shards of " + step_dir +
                                " still are is not known: " + there.reason};
  }
  return Error{Code::kCorrupt, "its manifest is in place, but " + step_dir + " is " +
                                   std::string(StepStateName(there.state)) + ": " +
                                   there.reason + "; was it removed as old?"};
}

Status Pin(Files& files, const std::string& step_dir) {
  const std::string path = JoinPath(step_dir, kPinName);
  KEEL_TRY(WriteDurably(files, path, ""));
  KEEL_TRY_ASSIGN(const bool is_there, Exists(files, path));
  if (is_there) return Ok();
  return Error{Code::kIo, path + " was written, and is not there: what keeps it does not do what "
                                 "it says"};
}

Status Unpin(Files& files, const std::string& step_dir) {
  const Status removed = files.Remove(JoinPath(step_dir, kPinName));
  if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
  return files.SyncDir(step_dir);
}

}  // namespace keel
