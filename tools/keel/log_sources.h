// LogSource: which file of a job's log directories is whose.
// Promises   pure: a path is enough. Files of workers are told by keelrun's layout
//            (elastic/workers/logs.h); of other files, those whose names end as logs do.
// Does not   know names of hosts that no folder has: several hosts in one --log-dir are told apart
//            by the number of their run.
// Threads    any; pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace keel {

struct LogSource {
  std::string path;
  std::string root = {};       // of the command line, below which it lies
  std::string host;            // the folders above, or the number of the run; empty: there are none
  std::string who;             // "worker1", "worker1.2" in its third attempt; "keelrun" of a file
  std::optional<int> local_rank;   // of a worker's file
  int attempt = 0;
  std::string stream;          // "stdout", "stderr"; empty: no file of a worker

  // "node0/worker1"
  std::string label() const { return host.empty() ? who : host + "/" + who; }
};

// Of paths below one directory, "node0/job_12345678/attempt_0/1/stderr.log". Those that are no
// logs, or only copies of parts of others, are left out.
std::vector<LogSource> LogSourcesOf(const std::vector<std::string>& paths);

// Names of roots in front of those below: the last folders of each, as few as tell all apart, and
// without those at their ends that all have: node0 and node1 of node0/logs and node1/logs.
std::vector<std::string> RootNamesOf(const std::vector<std::string>& roots);

// Of a name that a full log may have been given to make room for the next ("keelrun.log.1"), that
// of the log; empty: it is no such name.
std::string LogBefore(const std::string& path);

// Whether a folder may have logs in it: no checkpoint has, and nothing that is hidden.
bool MayHoldLogs(const std::string& folder_name);

}  // namespace keel
