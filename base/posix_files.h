// PosixFiles: Files on the machine's own disks.
// Promises   as base/files.h; interrupted calls go on; no descriptor is inherited by an exec or
//            left open by a failure.
// Does not   open what is not a regular file (a pipe would block); serve locks across hosts on
//            file systems that keep flock() local (some NFS mounts do).
// Threads    any.
#pragma once

#include "base/files.h"

namespace keel {

class PosixFiles : public Files {
 public:
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
};

}  // namespace keel
