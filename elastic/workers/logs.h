// WorkerLogs: where each worker's output and error file go, as torchrun lays them out:
//   <log_dir>/<run_id>_<8 digits>/attempt_<N>/<local_rank>/{stdout.log,stderr.log,error.json}
//                                 attempt_<N>/{filtered_stdout.log,filtered_stderr.log}
// Promises   no folder of a worker is ever given to a second one, in this run or another: N is the
//            number asked for, or the next that this local rank has not had.
// Does not   open the logs (elastic/process/spawn.h) or show them (elastic/workers/log_tail.h);
//            survive power loss: no folder is synced.
// Threads    one at a time.
// Errors     kInvalid: the log folder is no folder; those of Files::MakeDir().
// Lifetime   keeps `files` by reference, also in a call that gets no answer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/result.h"
#include "elastic/process/spawn.h"
#include "elastic/workers/stream_map.h"

namespace keel {

// So long a file system is waited for by what the launcher must not stand still for.
inline constexpr Duration kLogFolderLimit = std::chrono::seconds(3);

// Given as --log-dir: no files at all; whatever is not hidden goes to the console.
inline constexpr const char* kNoLogs = "/dev/null";

struct LogOptions {
  std::string log_dir;                       // empty: a folder of its own in `temporary_dir`
  std::string temporary_dir = "/tmp";
  std::string run_id = "none";
  StreamMap redirects;                       // to files
  StreamMap tee;                             // to files and to the console
  std::optional<std::set<int>> shown_ranks;  // local ranks shown on the console; empty: all
  std::vector<std::string> out_filters;      // lines to have once more, in filtered_stdout.log
  std::vector<std::string> err_filters;
  std::string role = "default";
  std::string host;                          // its name, for the prefix
  std::string prefix_template;               // of lines on the console; empty: "[role<rank>]:"
};

struct StreamPlan {
  enum class To { kConsole, kFile, kNowhere };

  To to = To::kConsole;
  std::string path;            // for kFile
  bool shown = false;          // for a file: its lines go to the console, too
  // For a shown file: where the lines that a filter takes go; empty: nowhere.
  std::string filtered_path;

  Stream AsStream() const;
  bool operator==(const StreamPlan&) const = default;
};

struct SeatLogs {
  int attempt = 0;
  std::string folder;          // empty: none
  StreamPlan out;
  StreamPlan err;
  std::string error_file;      // empty: none
};

// The pure part of Prepare().
SeatLogs PlanSeatLogs(const LogOptions& options, const std::string& run_dir, int attempt,
                      int local_rank);

// The prefix of a worker's lines on the console. `rank` is its global one.
std::string LinePrefix(const LogOptions& options, int local_rank, int rank);

class WorkerLogs {
 public:
  // Makes the folder of this run. `random` names it.
  static Result<WorkerLogs> Open(Files& files, Random& random, LogOptions options);

  const LogOptions& options() const { return options_; }
  const std::string& run_dir() const { return run_dir_; }   // empty: none

  // Makes the folder of a worker that is about to be started; where the disk is full, fails or does
  // not answer, it only logs that.
  Result<SeatLogs> Prepare(int attempt, int local_rank);

  // To be called after the last worker: in a folder that we chose ourselves, removes what is empty.
  void RemoveEmpty();

 private:
  WorkerLogs(Files& files, LogOptions options, std::string run_dir, std::string own_dir);

  Files& files_;
  LogOptions options_;
  std::string run_dir_;
  // The folder that was made for `run_dir_`; empty: --log-dir was given.
  std::string own_dir_;
  std::map<int, int> next_attempt_;   // by local rank
};

}  // namespace keel
