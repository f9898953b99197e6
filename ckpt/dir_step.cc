// A directory, a lock that keeps others from removing what is in it, and a rename that commits.
#include <memory>
#include <string>
#include <utility>

#include "base/file_helpers.h"
#include "ckpt/step_place.h"

namespace keel {
namespace {

// A further try is needed only if a retention came in the moment between making the directory and
// locking it.
constexpr int kPrepareTries = 1000;

class DirStep : public StepPlace {
 public:
  DirStep(Files& files, StepPlan plan)
      : files_(files),
        plan_(std::move(plan)),
        shard_path_(JoinPath(plan_.step_dir, ShardFileName(plan_.shard))) {}
  ~DirStep() override;

  bool has_locks() const override { return true; }
  Status Prepare() override;
  Status KeepOthersOut() override;
  void RemoveLeftover() override { DropShard(); }
  Result<std::unique_ptr<File>> MakeShard(uint64_t bytes_max, bool direct,
                                          Progress* progress) override;
  Status KeepShard() override { return files_.SyncDir(plan_.step_dir); }
  void DropShard() override { (void)files_.Remove(shard_path_); }
  Status Publish(const std::string& manifest,
                 const std::function<Status()>& may_appear) override;
  void Leave() override { leaves_ = true; }

 private:
  std::string FirstLockPath() const {
    return JoinPath(plan_.step_dir, ShardLockName(plan_.shard, 0));
  }
  Status MakeStepDir();
  Status TakeLock();

  Files& files_;
  const StepPlan plan_;
  const std::string shard_path_;
  std::string lock_path_;
  std::unique_ptr<FileLock> lock_;
  bool leaves_ = false;
};

// Until the lock is held, retention may remove the directory again, since it is empty or holds
// nothing alive. Then it is made anew. Once the lock is held, nobody removes it.
Status DirStep::Prepare() {
  for (int tries = 1;; ++tries) {
    KEEL_TRY(MakeStepDir());
    const Status locked = TakeLock();
    if (locked.ok()) return files_.SyncDir(plan_.root);
    if (locked.error().code != Code::kNotFound) return locked;
    if (tries == kPrepareTries) {
      return locked.error().Doing("another process removes its directory again and again");
    }
  }
}

Status DirStep::MakeStepDir() {
  Status made = files_.MakeDir(plan_.step_dir);
  if (!made.ok() && made.error().code == Code::kNotFound) {
    KEEL_TRY(MakeDirs(files_, plan_.root));
    made = files_.MakeDir(plan_.step_dir);
  }
  if (made.ok() || made.error().code != Code::kExists) return made;
  const auto info = files_.Stat(plan_.step_dir);
  if (info.ok() && info->kind != FileKind::kDirectory) return made;
  return Ok();  // if it is gone by now, taking the lock says so
}

Status DirStep::TakeLock() {
  for (uint32_t i = 0;; ++i) {
    lock_path_ = JoinPath(plan_.step_dir, ShardLockName(plan_.shard, i));
    auto lock = files_.Lock(lock_path_, "a save in progress");
    if (lock.ok()) {
      lock_ = std::move(*lock);
      return Ok();
    }
    if (lock.error().code != Code::kExists || i + 1 == kShardLocks) return lock.error();
  }
}

// Of the locks of one shard, the first is the one that all agree on who work under a name that is
// not new: copies, and whoever removes a shard (ckpt/removal.cc). A look may have been in its way.
Status DirStep::KeepOthersOut() {
  if (lock_path_ == FirstLockPath()) return Ok();
  KEEL_TRY_ASSIGN(auto first, files_.Lock(FirstLockPath(), "a save in progress"));
  (void)files_.Remove(lock_path_);   // while it is still held
  lock_ = std::move(first);
  lock_path_ = FirstLockPath();
  return Ok();
}

DirStep::~DirStep() {
  // A lock file that stays behind is not locked, and gc removes it.
  if (lock_ != nullptr) (void)files_.Remove(lock_path_);
  if (leaves_) (void)files_.RemoveDir(plan_.step_dir);  // fails if others have files in it
}

Result<std::unique_ptr<File>> DirStep::MakeShard(uint64_t, bool direct, Progress*) {
  return files_.Open(shard_path_, {.write = true,
                                   .create = true,
                                   .exclusive = true,
                                   .direct = direct,
                                   .early_writeback = true});
}

Status DirStep::Publish(const std::string& manifest, const std::function<Status()>& may_appear) {
  // It is named after the attempt, so another saver of this step has another file.
  const std::string& attempt = plan_.shard.attempt;
  const std::string temporary = JoinPath(plan_.step_dir, ManifestTempName(attempt));
  const auto write = [&]() -> Status {
    KEEL_TRY_ASSIGN(const auto file,
                    files_.Open(temporary, {.write = true, .create = true, .truncate = true}));
    KEEL_TRY(file->WriteAt(0, BytesOf(manifest)));
    KEEL_TRY(file->Sync());
    // Two savers of one step would both find no manifest, and the second would replace the first's.
    const std::string lock_path = JoinPath(plan_.step_dir, kCommitLockName);
    KEEL_TRY_ASSIGN(const auto lock, files_.Lock(lock_path, attempt));
    Status renamed = may_appear();
    if (renamed.ok()) {
      renamed = files_.Rename(temporary, JoinPath(plan_.step_dir, kManifestName));
    }
    // This comes last under the lock: whoever takes a new lock finds the manifest.
    (void)files_.Remove(lock_path);
    return renamed;
  };
  const Status status = write();
  if (!status.ok()) {
    (void)files_.Remove(temporary);
    return status;
  }
  const Status synced = files_.SyncDir(plan_.step_dir);
  if (synced.ok()) return synced;
  return synced.error().Doing("the manifest is in place, but a loss of power may take it away");
}

}  // namespace

std::unique_ptr<StepPlace> MakeDirStep(Files& files, StepPlan plan) {
  return std::make_unique<DirStep>(files, std::move(plan));
}

Result<std::unique_ptr<StepPlace>> StepPlace::At(Files& files, StepPlan plan) {
  KEEL_TRY_ASSIGN(BucketPlace root, files.Bucket(plan.root));
  if (root.bucket == nullptr) return MakeDirStep(files, std::move(plan));
  return MakeBucketStep(files, std::move(root), std::move(plan));
}

}  // namespace keel
