// LostOutput: which files miss how much of the workers' output, and why.
// Promises   the first loss of each file is told at once, and later ones at pauses that double,
//            from 10 s to 10 minutes, each time with all that is missing so far.
// Threads    any. `tell` is called on the thread that notes a loss, without any lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"

namespace keel {

struct LostBytes {
  std::string where;     // a file; or the console, and for which file
  uint64_t bytes = 0;
  std::string why;       // the last reason
  bool operator==(const LostBytes&) const = default;
};

class LostOutput {
 public:
  using Tell = std::function<void(const LostBytes& lost)>;
  explicit LostOutput(Tell tell) : tell_(std::move(tell)) {}

  void Note(const std::string& where, uint64_t bytes, const std::string& why, TimePoint now);
  // Sorted by name.
  std::vector<LostBytes> All() const;

 private:
  struct Entry {
    LostBytes lost;
    Duration pause{0};
    TimePoint tell_at;
  };

  const Tell tell_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;   // guarded by mutex_
};

}  // namespace keel
