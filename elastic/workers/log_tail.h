// LogTail: shows on the console what workers write, line by line: from a spool that is being filled
// (elastic/workers/output_pump.h), or from a log file that grows.
// Promises   a worker never waits for the console: what the console has not taken yet stays where
//            it is. No line is lost, cut or mixed with another as long as the console takes it,
//            not even a last one without a line feed; a line beyond 1 MiB is broken. Files need
//            not exist yet. If a status line uses the terminal, lines are written through that. A
//            filtered file that takes nothing is reported like other log files.
// Threads    methods from any. A thread of its own reads and writes.
// Errors     kTimeout: the console takes nothing. A log that cannot be read is reported once in
//            our own log, and opened anew at each look.
// Lifetime   keeps `files`, `status` and `lost` by reference.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "elastic/process/console.h"
#include "elastic/report/lost_output.h"
#include "elastic/report/status_line.h"
#include "elastic/workers/output_spool.h"
#include "store/cancel.h"

namespace keel {

struct TailSource {
  std::string path;                  // of the log file
  std::string prefix;                // of each line on the console
  bool is_stderr = false;
  std::string filtered_path;         // lines that hold one of `filters` go there too, with prefix
  std::vector<std::string> filters;
  std::shared_ptr<OutputSpool> spool = {};   // read instead of the file; null: read the file
};

class LogTail {
 public:
  // The consoles' descriptors remain the caller's.
  LogTail(Files& files, LostOutput& lost, int out_fd = 1, int err_fd = 2,
          StatusLine* status = nullptr);
  // Gives up what the console has not taken; call Stop() before, to wait for it.
  ~LogTail();

  // Returns a number for Finish().
  int Follow(TailSource source);
  // The worker has ended: what is in the file now is all of it. A spool tells its end itself.
  void Finish(int number);
  // Finishes all, and returns once everything is shown. Nothing can be followed afterwards.
  Status Stop(TimePoint deadline);

 private:
  struct Followed {
    TailSource source;
    bool finished = false;
    std::unique_ptr<File> file;
    uint64_t offset = 0;
    bool unreadable = false;         // and that was said
    std::string partial;             // the beginning of a line whose end is yet to come
    bool is_after_return = false;    // the last line ended by '\r', of which '\n' may be a part
    bool is_blank = false;           // and was empty, and is shown only if it does
  };
  struct Filtered {
    std::unique_ptr<File> file;
    uint64_t offset = 0;
  };

  void Run();
  bool ReadOn(Followed& followed);
  bool ReadPiece(Followed& followed);
  Result<size_t> ReadSource(Followed& followed, std::span<std::byte> piece);
  void ShowLines(Followed& followed, bool is_end);
  void Show(std::string_view lines, bool is_stderr);
  void AddFiltered(const TailSource& source, const std::string& line);
  std::vector<std::shared_ptr<Followed>> Current();

  Files& files_;
  LostOutput& lost_;
  Console out_;
  Console err_;
  StatusLine* const status_;       // null: there is none
  CancelToken give_up_;
  std::map<std::string, Filtered> filtered_;          // the thread's own, by path

  struct Shared {
    std::map<int, std::shared_ptr<Followed>> followed;   // by number
    int next_number = 0;
    bool stopping = false;
    bool done = false;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  Shared shared_;                  // guarded by mutex_
  std::thread thread_;
};

}  // namespace keel
