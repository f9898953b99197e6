// Signals that end a command which has begun to write: it unwinds, so that nothing is left of what
// it did not finish, and then ends by that signal.
// Promises   from the first call that writes on, SIGINT, SIGTERM and SIGHUP are noted, and each
//            further call of StoppableFiles that works fails with kCancelled, as does one that
//            waits for a store to take what is uploaded; what removes and looks does not. A second
//            such signal ends the program at once; a SIGTERM or SIGHUP within a second after the
//            first one is taken for the same one. A signal that was ignored when the program began
//            (nohup) stays ignored. A file that grows beyond its limit (ulimit -f) is an error of
//            the call.
// Does not   change anything for commands that only read: a signal ends them as ever.
// Threads    any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/objects.h"
#include "base/result.h"

namespace keel {

// For whoever begins to write; the first call counts.
void NoteSignalsFromNowOn();
// The signal that was noted; 0: none.
int StopSignal();
// kCancelled where one was noted.
Status CheckStop();
// Ends the program by the noted signal, if there is one.
void EndByStopSignal();

// Calls `on_stop` in a thread of its own once a signal is noted, or at once if one was before. It
// is not called after the end of this, nor is it running.
class StopWatch {
 public:
  explicit StopWatch(std::function<void()> on_stop);
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;
  ~StopWatch();

 private:
  PipeEnds end_;         // closed: it is to end
  std::thread thread_;   // none where the system has no more pipes
};

class StoppableFiles : public Files {
 public:
  explicit StoppableFiles(Files& below);
  ~StoppableFiles() override;

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
  Result<BucketPlace> Bucket(const std::string& path) override;

 private:
  Files& below_;
  std::mutex mutex_;
  std::map<Objects*, std::unique_ptr<Objects>> buckets_;   // stoppable ones; guarded by mutex_
};

}  // namespace keel
