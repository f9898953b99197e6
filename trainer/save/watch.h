// SaveWatch: when to report a save that takes long. A disk that hangs reports no error, and
// training goes on beside it, so nobody would notice that no checkpoint is made any more.
// Promises   people hear nothing while saves take about as long as before; then they hear of a
//            late one, and again each time it has taken twice as long. A worker that waits for the
//            disk tells its launcher for five minutes that it is alive.
// Does not   end anything: the disk may still answer.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace keel {

class SaveWatch {
 public:
  // `spread`: the time over which the save is spread on purpose; `expected`: how long earlier ones
  // took.
  void OnBegin(TimePoint now, Duration spread, std::optional<Duration> expected);
  // While a save is under way: how long it has taken, if that is to be told now.
  std::optional<Duration> Look(TimePoint now);

 private:
  TimePoint begin_{};
  Duration tell_after_ = Duration::max();   // nothing has begun
};

// A server that fails over is silent for longer than a worker may be. A worker killed for that
// loses what it holds, and its replacement waits for the same disk. But if only one host's disk
// hangs, the others can save without it, so it is not waited for without end.
class DiskPatience {
 public:
  explicit DiskPatience(TimePoint now) : moved_(now) {}
  // `bytes` are written by now. Returns whether to say that we are alive.
  bool IsLeft(TimePoint now, uint64_t bytes);

 private:
  TimePoint moved_;
  uint64_t bytes_ = 0;
};

}  // namespace keel
