// The order of calls that makes a commit atomic and durable (FORMAT.md 6).
#include "ckpt/save.h"

#include <utility>

#include "base/file_helpers.h"
#include "ckpt/checkpoint.h"
#include "ckpt/error_list.h"
#include "ckpt/names.h"

namespace keel {
namespace {

// A further try is needed only if a retention came in the moment between making the directory and
// locking it.
constexpr int kBeginTries = 1000;

std::string Doing(const SavePlan& plan) {
  return "saving step " + std::to_string(plan.description.step);
}

}  // namespace

Save::Save(Files& files, SavePlan plan)
    : files_(files),
      plan_(std::move(plan)),
      step_dir_(JoinPath(plan_.root, StepDirName(plan_.description.step))) {}

Result<std::unique_ptr<Save>> Save::Begin(Files& files, SavePlan plan) {
  std::unique_ptr<Save> save(new Save(files, std::move(plan)));
  const Status status = save->Prepare();
  if (!status.ok()) return status.error().Doing(Doing(save->plan_));
  return save;
}

Status Save::Prepare() {
  KEEL_TRY(CheckAttempt(plan_.attempt));
  if (plan_.parts == 0 || plan_.parts > kShardsMax || plan_.part >= plan_.parts) {
    return Error{Code::kInvalid, "part " + std::to_string(plan_.part) + " of " +
                                     std::to_string(plan_.parts) + " writers (9999 at most)"};
  }
  KEEL_TRY(CheckDescription(plan_.description));
  KEEL_TRY(CheckUncommitted());
  const Status begun = MakeAndLock();
  if (!begun.ok()) abandoned_ = true;
  return begun;
}

// Until the lock is held, retention may remove the directory again, since it is empty or holds
// nothing alive. Then it is made anew. Once the lock is held, nobody removes it.
Status Save::MakeAndLock() {
  for (int tries = 1;; ++tries) {
    KEEL_TRY(MakeStepDir());
    const Status locked = TakeLock();
    if (locked.ok()) return files_.SyncDir(plan_.root);
    if (locked.error().code != Code::kNotFound) return locked;
    if (tries == kBeginTries) {
      return locked.error().Doing("another process removes its directory again and again");
    }
  }
}

Status Save::MakeStepDir() {
  Status made = files_.MakeDir(step_dir_);
  if (!made.ok() && made.error().code == Code::kNotFound) {
    KEEL_TRY(MakeDirs(files_, plan_.root));
    made = files_.MakeDir(step_dir_);
  }
  if (made.ok() || made.error().code != Code::kExists) return made;
  const auto info = files_.Stat(step_dir_);
  if (info.ok() && info->kind != FileKind::kDirectory) return made;
  return Ok();  // if it is gone by now, taking the lock says so
}

Status Save::TakeLock() {
  for (uint32_t i = 0;; ++i) {
    lock_path_ = JoinPath(step_dir_, ShardLockName(Name(plan_.part), i));
    auto lock = files_.Lock(lock_path_, "a save in progress");
    if (lock.ok()) {
      lock_ = std::move(*lock);
      return Ok();
    }
    if (lock.error().code != Code::kExists || i + 1 == kShardLocks) return lock.error();
  }
}

Save::~Save() {
  // A lock file that stays behind is not locked, and gc removes it.
  if (lock_ != nullptr) (void)files_.Remove(lock_path_);
  if (abandoned_) (void)files_.RemoveDir(step_dir_);  // fails if others have files in it
}

// A manifest that cannot be read commits nothing, and may be replaced; one of a newer version may
// not.
Status Save::CheckUncommitted() const {
  const Result<Manifest> manifest = ReadManifest(files_, step_dir_);
  if (!manifest.ok()) {
    const Code code = manifest.error().code;
    if (code == Code::kNotFound || code == Code::kCorrupt) return Ok();
    if (code != Code::kInvalid) return manifest.error();
  }
  return Error{Code::kExists, step_dir_ + " is committed already" +
                                  (manifest.ok() ? ", by attempt " + manifest->attempt : "") +
                                  "; a committed checkpoint is never overwritten"};
}

Result<ShardSummary> Save::WriteShard(TensorSource& source, const WriteOptions& options) {
  const ShardName name = Name(plan_.part);
  auto written = keel::WriteShard(files_, JoinPath(step_dir_, ShardFileName(name)), name,
                                  plan_.description, source, options);
  if (written.ok()) {
    const Status synced = files_.SyncDir(step_dir_);
    if (!synced.ok()) written = synced.error();
  }
  if (!written.ok()) {
    Abandon();
    return written.error().Doing(Doing(plan_));
  }
  return written;
}

void Save::Abandon() {
  const Result<bool> committed = Exists(files_, JoinPath(step_dir_, kManifestName));
  if (!committed.ok() || *committed) return;
  abandoned_ = true;
  (void)files_.Remove(JoinPath(step_dir_, ShardFileName(Name(plan_.part))));
}

Result<Manifest> Save::BuildManifest(int64_t saved_at_ns) const {
  Manifest manifest;
  manifest.description = plan_.description;
  manifest.attempt = plan_.attempt;
  manifest.saved_at_ns = saved_at_ns;
  std::vector<std::unique_ptr<ShardReader>> shards;
  ErrorList errors;
  for (uint32_t part = 0; part < plan_.parts; ++part) {
    const std::string file = ShardFileName(Name(part));
    auto shard = ShardReader::Open(files_, JoinPath(step_dir_, file));
    Status status = shard.ok() ? CheckShardFits(**shard, plan_.description, Name(part))
                               : Status(shard.error());
    if (!status.ok()) {
      errors.Add(status.error());
      continue;
    }
    manifest.shards.push_back(
        {file, (*shard)->bytes(), (*shard)->digest(), (*shard)->header().frames});
    shards.push_back(std::move(*shard));
  }
  KEEL_TRY(errors.ToStatus("the attempt's shards"));
  manifest.tensor_digests = CombineTensorDigests(plan_.description.layout, shards);
  return manifest;
}

Result<CommitReport> Save::Commit(int64_t saved_at_ns,
                                  const std::function<Status()>& may_appear) {
  const auto manifest = BuildManifest(saved_at_ns);
  if (!manifest.ok()) return manifest.error().Doing(Doing(plan_));
  const Status published = Publish(*manifest, may_appear);
  if (!published.ok()) return published.error().Doing(Doing(plan_));
  CommitReport report{step_dir_, 0, plan_.description.layout.tensor_bytes()};
  for (const ManifestShard& shard : manifest->shards) report.stored_bytes += shard.bytes;
  return report;
}

Status Save::Publish(const Manifest& manifest, const std::function<Status()>& may_appear) {
  // It is named after the attempt, so another saver of this step has another file.
  const std::string temporary = JoinPath(step_dir_, ManifestTempName(plan_.attempt));
  const std::string final_path = JoinPath(step_dir_, kManifestName);
  const auto write = [&]() -> Status {
    KEEL_TRY_ASSIGN(const auto file,
                    files_.Open(temporary, {.write = true, .create = true, .truncate = true}));
    KEEL_TRY(file->WriteAt(0, BytesOf(ManifestText(manifest))));
    KEEL_TRY(file->Sync());
    // Two savers of one step would both find no manifest, and the second would replace the first's.
    const std::string lock_path = JoinPath(step_dir_, kCommitLockName);
    KEEL_TRY_ASSIGN(const auto lock, files_.Lock(lock_path, plan_.attempt));
    Status renamed = CheckUncommitted();
    if (renamed.ok()) renamed = may_appear();
    if (renamed.ok()) renamed = files_.Rename(temporary, final_path);
    // This comes last under the lock: whoever takes a new lock finds the manifest.
    (void)files_.Remove(lock_path);
    return renamed;
  };
  const Status status = write();
  if (!status.ok()) {
    (void)files_.Remove(temporary);
    return status;
  }
  const Status synced = files_.SyncDir(step_dir_);
  if (synced.ok()) return synced;
  return synced.error().Doing("the manifest is in place, but a loss of power may take it away");
}

namespace {

Result<CommitReport> SaveAlone(Files& files, SavePlan plan, TensorSource& source,
                               const WriteOptions& options, int64_t saved_at_ns) {
  KEEL_TRY_ASSIGN(const auto save, Save::Begin(files, std::move(plan)));
  KEEL_TRY(save->WriteShard(source, options));
  auto committed = save->Commit(saved_at_ns);
  if (!committed.ok()) save->Abandon();
  return committed;
}

bool HasNameOfStep(std::string_view dir) {
  while (dir.ends_with('/')) dir.remove_suffix(1);
  return ParseStepDirName(dir.substr(dir.rfind('/') + 1)).has_value();
}

// `dir` and its parents, as far as they do not exist; the deepest comes first.
std::vector<std::string> MissingDirs(Files& files, std::string dir) {
  std::vector<std::string> missing;
  for (;;) {
    const auto there = Exists(files, dir);
    if (!there.ok() || *there || ParentDir(dir) == dir) return missing;
    missing.push_back(dir);
    dir = ParentDir(dir);
  }
}

}  // namespace

Result<CommitReport> SaveCheckpoint(Files& files, SavePlan plan, TensorSource& source,
                                    const WriteOptions& options, int64_t saved_at_ns) {
  // Retention would not remove a checkpoint that contains another one, and nobody would find that.
  if (HasNameOfStep(plan.root) || files.Stat(JoinPath(plan.root, kManifestName)).ok()) {
    return Error{Code::kInvalid, plan.root + " is a checkpoint, or has the name of one, and no "
                                             "other one is saved in it: name the directory above"};
  }
  const std::vector<std::string> missing = MissingDirs(files, plan.root);
  auto committed = SaveAlone(files, std::move(plan), source, options, saved_at_ns);
  if (committed.ok()) return committed;
  // RemoveDir() fails on those that were not made or are not empty, so they need no check.
  for (const std::string& dir : missing) (void)files.RemoveDir(dir);
  return committed;
}

}  // namespace keel
