// MergeLogs: the entries of many logs as one story, by time.
// Promises   the entries of one log stay in their order; of all that come next, the earliest is
//            taken. An entry without a time has that of the last one before it in its log that has
//            one. Holds one entry of each log.
// Does not   know how far apart the clocks of hosts are; read or print anything.
// Threads    one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "tools/keel/log_words.h"

namespace keel {

struct LogEntry {
  size_t source = 0;        // number of its log
  int64_t nanos = 0;        // where it is in the story
  LogWords words;
  uint64_t cut_bytes = 0;   // of the line, that are left out
  bool is_torn = false;     // the line has no end
  bool is_notice = false;   // of no log, but about one: no filter hides it
};

class LogMerge {
 public:
  // The next entry of a log, without `source` and `nanos`; none: there is none at present.
  using NextOf = std::function<std::optional<LogEntry>(size_t source)>;

  explicit LogMerge(NextOf next) : next_(std::move(next)) {}

  // The next log, and the time of its entries in front of the first one that has a time.
  void Add(int64_t nanos);
  // The same for logs that have told no time yet, as of now: those that are followed.
  void SetUntold(int64_t nanos);
  // The next entry of all; none: no log has one at present, and later calls ask all again.
  std::optional<LogEntry> Next();

 private:
  struct Log {
    int64_t nanos = 0;      // of the last entry that had a time
    bool has_told = false;
    bool is_waiting = true;   // it had nothing when it was asked last
  };
  struct Later {
    bool operator()(const LogEntry& a, const LogEntry& b) const {
      return a.nanos != b.nanos ? a.nanos > b.nanos : a.source > b.source;
    }
  };
  void Ask(size_t source);

  const NextOf next_;
  std::vector<Log> logs_;
  std::priority_queue<LogEntry, std::vector<LogEntry>, Later> heads_;
};

}  // namespace keel
