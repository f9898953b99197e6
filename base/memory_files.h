// MemoryFiles: a disk in memory that knows which of its bytes and names were synced.
// Promises   behaves as base/files.h says; PossibleDisks() gives disks that a loss of power now
//            may leave behind: content is certain only as File::Sync() left it, names only as
//            SyncDir() left them. Unsynced writes are kept, lost or torn, in any combination and
//            any order; unsynced renames may be kept while the content is lost. Changes of the
//            same name are kept in the order in which they were made.
// Does not   promise more than POSIX: a synced file whose name, or whose directory's name, was
//            not synced may be gone. (Real file systems are often kinder.) No modes, no links.
// Threads    any.
// Lifetime   Files and locks may not outlive it. Paths are taken from "/"; ".." goes up by text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"

namespace keel {

struct MemoryDisk;

class MemoryFiles : public Files {
 public:
  struct Options {
    std::optional<uint64_t> capacity_bytes = std::nullopt;  // none: never kNoSpace
    bool grants_direct = true;                              // as File::direct() says
  };

  MemoryFiles();
  explicit MemoryFiles(Options options);
  ~MemoryFiles() override;

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

  // Independent copies; this disk stays as it is. Always: all kept, all lost, names kept and
  // content lost (or only its sizes kept), content kept and names lost, and each change alone
  // lost (64 of them, drawn by the seed, where there are more); then `mixes` random ones.
  std::vector<std::unique_ptr<MemoryFiles>> PossibleDisks(int mixes, uint64_t seed) const;

 private:
  MemoryFiles(Options options, std::unique_ptr<MemoryDisk> disk);

  const Options options_;
  const std::unique_ptr<MemoryDisk> disk_;
};

}  // namespace keel
