// BucketFiles: files on the disk, and objects in buckets ("s3://bucket/run/a") as
// base/object_files.h has them.
// Promises   the bucket module, and with it libcurl, is loaded at the first path of a bucket.
// Threads    any.
// Errors     those of the files and of the buckets; kNotFound or kForeign where the module is
//            missing or cannot be loaded.
// Lifetime   keeps the files by reference. A bucket stays open as long as this lives.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/objects.h"
#include "store/bucket_module.h"

namespace keel {

// Whether a path is in a bucket.
bool IsBucketPath(std::string_view path);

class BucketFiles : public Files {
 public:
  explicit BucketFiles(Files& disk);
  ~BucketFiles() override;

  // Whether paths in buckets are, from now on, of stores that may ignore conditions: what is to be
  // put where nothing is, is then looked for before and after.
  void SetUnguarded(bool is_unguarded);

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status RemoveDir(const std::string& path) override;
  Status MakeDir(const std::string& path) override;
  Result<std::vector<DirEntry>> List(const std::string& path) override;
  Result<FileInfo> Stat(const std::string& path) override;
  Status SyncDir(const std::string& path) override;
  Result<std::string> Resolve(const std::string& path) override;
  Result<uint64_t> FreeBytes(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& owner) override;
  Result<bool> IsLocked(const std::string& path) override;
  Result<BucketPlace> Bucket(const std::string& path) override;

 private:
  struct Opened;
  Result<Files*> Of(const std::string& path);
  Result<BucketOpener*> Opener();

  Files& disk_;
  std::mutex mutex_;
  BucketOpener* opener_ = nullptr;   // guarded by mutex_, and so is the rest
  bool is_unguarded_ = false;
  // By name, and whether they are unguarded.
  std::map<std::pair<std::string, bool>, std::unique_ptr<Opened>> buckets_;
};

// Those of this process, over its disk: they are never closed, since a thread that waits for a
// store may outlive all else.
BucketFiles& OwnBuckets();

}  // namespace keel
