// LogStory: which entries of a job's logs are told, and in which words.
// Promises   an entry that lies in two files is told once, unless a filter hides the other one: a
//            line that keelrun has copied from a worker whose own file is below the same root, and
//            what a training program writes to its log and to --log-jsonl alike. Whatever bytes a
//            line holds, it stays one line of text.
// Does not   read logs or print.
// Threads    one at a time.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/keel/log_merge.h"
#include "tools/keel/log_sources.h"
#include "tools/keel/paint.h"

namespace keel {

struct LogFilter {
  std::vector<std::string> hosts;        // empty: all
  std::vector<int> local_ranks;          // empty: all
  std::string least_level = "debug";
  bool only_events = false;              // no output of programs, and no line for every few steps
  std::optional<int64_t> since;          // nanoseconds since 1970
  std::optional<int64_t> until;
};

class LogStory {
 public:
  LogStory(LogFilter filter, Paint paint) : filter_(std::move(filter)), paint_(paint) {}

  void Add(LogSource source);
  const std::vector<LogSource>& sources() const { return sources_; }

  bool Tells(const LogEntry& entry);
  // With their line feed.
  std::string Text(const LogEntry& entry) const;
  std::string JsonLine(const LogEntry& entry) const;

 private:
  bool IsOfHost(const LogSource& source) const;
  bool IsOfRank(const LogEntry& entry) const;
  bool IsInWorkersFile(const LogEntry& copy) const;
  bool IsRepeated(const LogEntry& entry);

  const LogFilter filter_;
  const Paint paint_;
  std::vector<LogSource> sources_;
  size_t label_width_ = 0;
  std::set<std::pair<std::string, int>> workers_;   // root, local rank: what hosts are told of
  struct Told {
    bool by_worker;   // it was in the worker's own file
    int64_t nanos;
    std::string what;
  };
  std::deque<Told> told_;   // the newest that may come again
};

}  // namespace keel
