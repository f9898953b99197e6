// Keys below a prefix: a shard is an upload that nobody sees before its end, and the manifest is
// put where none is. There are no locks: ckpt/removal.h leaves alone what is young.
#include <memory>
#include <string>
#include <utility>

#include "base/file_helpers.h"
#include "base/object_files.h"
#include "ckpt/step_place.h"

namespace keel {
namespace {

// A file that is written from front to back, in pieces that the store gets as they come.
class UploadedFile : public File {
 public:
  UploadedFile(std::string path, std::unique_ptr<ObjectUpload> upload, Progress* progress)
      : path_(std::move(path)), upload_(std::move(upload)), progress_(progress) {
    if (progress_ != nullptr) {
      progress_->bell.Hang([upload = upload_.get()] { upload->Cancel(); });
    }
  }
  ~UploadedFile() override {
    if (progress_ != nullptr) progress_->bell.TakeDown();
  }

  const std::string& path() const override { return path_; }
  bool direct() const override { return false; }
  Result<uint64_t> Size() override { return bytes_; }

  Status WriteAt(uint64_t offset, std::span<const std::byte> from) override {
    if (offset != bytes_) return OnlyAppends("written at " + std::to_string(offset));
    bytes_ += from.size();
    return upload_->Append(from);
  }
  Status Truncate(uint64_t bytes) override {
    if (bytes == bytes_) return Ok();
    return OnlyAppends("cut to " + std::to_string(bytes));
  }
  Result<bool> Allocate(uint64_t) override { return false; }
  Status Sync() override { return upload_->Finish(); }
  Result<size_t> ReadAt(uint64_t, std::span<std::byte>) override {
    return OnlyAppends("read");
  }

 private:
  Error OnlyAppends(const std::string& what) const {
    return {Code::kInvalid, path_ + " is being uploaded and has " + std::to_string(bytes_) +
                                " bytes: it cannot be " + what};
  }

  const std::string path_;
  const std::unique_ptr<ObjectUpload> upload_;
  Progress* const progress_;
  uint64_t bytes_ = 0;
};

class BucketStep : public StepPlace {
 public:
  BucketStep(Files& files, BucketPlace root, StepPlan plan)
      : files_(files),
        bucket_(*root.bucket),
        plan_(std::move(plan)),
        prefix_(PrefixOf(root) + plan_.step_dir.substr(plan_.step_dir.rfind('/') + 1) + "/") {}

  bool has_locks() const override { return false; }
  // There is nothing to make, and no lock.
  Status Prepare() override { return Ok(); }
  WriteOptions Adapt(WriteOptions options) const override {
    options.write_threads = 1;   // the upload has threads of its own, behind one that appends
    options.direct = false;
    return options;
  }
  Result<std::unique_ptr<File>> MakeShard(uint64_t bytes_max, bool direct,
                                          Progress* progress) override;
  // An upload that is finished is durable, name and all; one that is not leaves nothing.
  Status KeepShard() override { return Ok(); }
  void DropShard() override {}
  Status Publish(const std::string& manifest,
                 const std::function<Status()>& may_appear) override;
  void Leave() override {}

 private:
  std::string ShardKey() const { return prefix_ + ShardFileName(plan_.shard); }

  Files& files_;
  Objects& bucket_;
  const StepPlan plan_;
  const std::string prefix_;   // of the step's keys
};

Result<std::unique_ptr<File>> BucketStep::MakeShard(uint64_t bytes_max, bool,
                                                    Progress* progress) {
  KEEL_TRY_ASSIGN(std::unique_ptr<ObjectUpload> upload, bucket_.Upload(ShardKey(), bytes_max));
  const std::string path = JoinPath(plan_.step_dir, ShardFileName(plan_.shard));
  return std::unique_ptr<File>(
      std::make_unique<UploadedFile>(path, std::move(upload), progress));
}

Status BucketStep::Publish(const std::string& manifest,
                           const std::function<Status()>& may_appear) {
  KEEL_TRY(may_appear());
  const std::string path = JoinPath(plan_.step_dir, kManifestName);
  const Status put = bucket_.PutIfAbsent(prefix_ + std::string(kManifestName), manifest);
  if (!put.ok() && put.error().code == Code::kExists) {
    return Error{Code::kExists, path + " is there already, of another save or damaged; nothing in "
                                       "a bucket takes a manifest's place"};
  }
  KEEL_TRY(put);
  // A store that says yes to everything would lose the checkpoint here, and not where it is needed.
  KEEL_TRY_ASSIGN(const std::string there, ReadWhole(files_, path, manifest.size()));
  if (there == manifest) return Ok();
  return Error{Code::kCorrupt, path + " was put, but the store returns another one"};
}

}  // namespace

std::unique_ptr<StepPlace> MakeBucketStep(Files& files, BucketPlace root, StepPlan plan) {
  return std::make_unique<BucketStep>(files, std::move(root), std::move(plan));
}

}  // namespace keel
