// Signals that end a command which has begun to write: it unwinds, so that nothing is left of what
// it did not finish, and then ends by that signal.
// Promises   from the first call that writes on, SIGINT, SIGTERM and SIGHUP are noted, and each
//            further call of StoppableFiles that works fails with kCancelled; what removes and
//            looks does not. A second such signal ends the program at once. A signal that was
//            ignored when the program began (nohup) stays ignored. A file that grows beyond its
//            limit (ulimit -f) is an error of the call.
// Does not   change anything for commands that only read: a signal ends them as ever.
// Threads    any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace keel {

// The signal that was noted; 0: none.
int StopSignal();
// kCancelled where one was noted.
Status CheckStop();
// Ends the program by the noted signal, if there is one.
void EndByStopSignal();

class StoppableFiles : public Files {
 public:
  explicit StoppableFiles(Files& below) : below_(below) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override { return below_.Remove(path); }
  Status RemoveDir(const std::string& path) override { return below_.RemoveDir(path); }
  Status MakeDir(const std::string& path) override;
  Result<std::vector<DirEntry>> List(const std::string& path) override {
    return below_.List(path);
  }
  Result<FileInfo> Stat(const std::string& path) override { return below_.Stat(path); }
  Status SyncDir(const std::string& path) override { return below_.SyncDir(path); }
  Result<std::string> Resolve(const std::string& path) override { return below_.Resolve(path); }
  Result<uint64_t> FreeBytes(const std::string& path) override { return below_.FreeBytes(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& owner) override;
  Result<bool> IsLocked(const std::string& path) override { return below_.IsLocked(path); }
  Result<BucketPlace> Bucket(const std::string& path) override { return below_.Bucket(path); }

 private:
  Files& below_;
};

}  // namespace keel
