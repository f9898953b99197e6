// SaveWatch: when to say that the save under way takes long: a disk that hangs reports no error,
// and training goes on beside it, so nobody would know that no checkpoint is made any more.
// Promises   silent as long as saves take about what they took before; then tells of one that is
//            late, and again each time it has taken twice as long.
// Does not   end anything: the disk may answer yet.
// Threads    a plain value.
#pragma once

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

}  // namespace keel
