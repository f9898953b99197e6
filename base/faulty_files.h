// FaultyFiles: any Files, with failures and deaths at chosen calls.
// Promises   every call is recorded, in the order of arrival; a planned fault strikes exactly at
//            the n-th matching call after it was planned. After a crash nothing that is called
//            later reaches the disk below: every call fails with kIo.
// Does not   forget what was not synced: crash it over MemoryFiles, then ask that one for its
//            PossibleDisks(). Does not stop a call that another thread has begun already.
// Threads    any; `act` runs in the thread that made the call, with nothing locked.
// Lifetime   keeps the Files below by reference; its Files and locks may not outlive it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace keel {

enum class FileOp {
  kOpen, kReadAt, kWriteAt, kTruncate, kAllocate, kSync, kSize, kRename, kRemove, kRemoveDir,
  kMakeDir, kList, kStat, kSyncDir, kFreeBytes, kLock, kIsLocked, kResolve,
};
std::string_view FileOpName(FileOp op);  // "open", "read", "write" ...

struct FileCall {
  FileOp op = FileOp::kOpen;
  std::string path;  // of a rename: the new one
};

struct Fault {
  enum class Kind {
    kFail,   // the call fails with `error_number` and does nothing (see `written_bytes`)
    kCrash,  // so does every call from here on
    kAct,    // `act` is called before the call, which goes on as usual if `act` returns
  };
  Kind kind = Kind::kFail;
  int at_call = 1;                          // the n-th call that matches what follows, from 1
  std::optional<FileOp> op = std::nullopt;  // none: every operation matches
  std::string path_part = {};               // only paths that contain it
  int error_number = EIO;                   // of kFail: ENOSPC, EDQUOT, ENOENT, EROFS ...
  bool lasting = false;                     // of kFail: at every later matching call too
  uint64_t written_bytes = 0;               // of a WriteAt(): written before the fault strikes
  std::function<void()> act = {};           // of kAct: raise(SIGKILL), say
};

class FaultyFiles : public Files {
 public:
  explicit FaultyFiles(Files& below) : below_(below) {}

  void Plan(Fault fault);

  std::vector<FileCall> calls() const;
  // How often a planned fault has struck. 0 after a run: the run makes fewer calls than at_call.
  int strikes() const;
  bool crashed() const;

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
  Result<BucketPlace> Bucket(const std::string& path) override { return below_.Bucket(path); }

 private:
  friend class FaultyFile;
  struct Planned {
    Fault fault;
    int matched = 0;
  };

  // The fault that strikes this call, if one does.
  std::optional<Fault> Record(FileOp op, const std::string& path);
  // Records the call; an error means that it must not go on. `write_part` writes the first bytes.
  Status Enter(FileOp op, const std::string& path,
               const std::function<void(uint64_t)>& write_part = nullptr);

  Files& below_;
  mutable std::mutex mutex_;
  std::vector<Planned> planned_;
  std::vector<FileCall> calls_;
  int strikes_ = 0;
  bool crashed_ = false;
};

}  // namespace keel
