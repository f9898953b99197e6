// SaveWatch: what is said of a save that takes long. A disk that hangs reports no error, and
// training goes on beside it, so nobody would know that no checkpoint is made any more.
// Promises   to people: silence as long as saves take about what they took before; then word of
//            one that is late, and again each time it has taken twice as long. To the launcher, by
//            a worker that waits for the disk: for five minutes that it is alive.
// Does not   end anything: the disk may answer yet.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace keel {

class SaveWatch {
 public:
  // `spread`: over which the save is spread on purpose; `expected`: what the ones before took.
  void OnBegin(TimePoint now, Duration spread, std::optional<Duration> expected);
  // While it is under way: for how long, if that is to be told now.
  std::optional<Duration> Look(TimePoint now);

 private:
  TimePoint begin_{};
  Duration tell_after_ = Duration::max();   // nothing has begun
};

// A server that fails over is silent for longer than a worker may be. Who is killed for it loses
// what it holds, and who is started in its place waits for the same disk. But where only one host's
// disk hangs the others can save without it, so that it is not waited for without end.
class DiskPatience {
 public:
  explicit DiskPatience(TimePoint now) : moved_(now) {}
  // So many bytes are written by now: whether to say that we are alive.
  bool IsLeft(TimePoint now, uint64_t bytes);

 private:
  TimePoint moved_;
  uint64_t bytes_ = 0;
};

}  // namespace keel
