// ObjectFiles: a bucket as files, so that what reads checkpoints reads them there.
//
// "s3://bucket/run/a" is the object `run/a`; "s3://bucket/run" is a directory as long as some key
// begins with `run/`.
// Promises   an open file has the size that its object had when it was opened. The first Stat()
//            of a file after a List() of its directory gives what was listed, without a request.
// Does not   write to files, rename or lock them: that is kInvalid, and IsLocked() is always false.
//            Whoever saves asks Bucket(), and does it as buckets can. Remove() does not say that
//            there was nothing; MakeDir(), RemoveDir() and SyncDir() have nothing to do, since what
//            is in a bucket is durable, and a directory there is but a part of names.
// Threads    any. Errors: those of base/objects.h.
// Lifetime   keeps the bucket by reference.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/objects.h"

namespace keel {

// Why nothing is written at that path, and what to do instead.
Error WriteRefused(const std::string& path);

// What the keys below that place begin with: "run/a/", or "" where it is the bucket itself.
std::string PrefixOf(const BucketPlace& place);

bool IsInBucket(Files& files, const std::string& path);

class ObjectFiles : public Files {
 public:
  explicit ObjectFiles(Objects& bucket) : bucket_(bucket) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status RemoveDir(const std::string& path) override;
  Status MakeDir(const std::string& path) override;
  Result<std::vector<DirEntry>> List(const std::string& path) override;
  Result<FileInfo> Stat(const std::string& path) override;
  Status SyncDir(const std::string& path) override;
  Result<std::string> Resolve(const std::string& path) override { return path; }
  Result<uint64_t> FreeBytes(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& owner) override;
  Result<bool> IsLocked(const std::string& path) override;
  Result<BucketPlace> Bucket(const std::string& path) override;

 private:
  std::string KeyOf(const std::string& path) const;
  // What List() told of the file, if nobody has asked for it since.
  bool TakeListed(const std::string& key, uint64_t* bytes);

  Objects& bucket_;
  std::mutex mutex_;
  std::map<std::string, uint64_t> listed_;   // bytes, by key
};

}  // namespace keel
