// Interrupts: tells whether somebody who presses Ctrl-C again means: now.
// Promises   two interrupts within 2 s mean that.
// Threads    one at a time.
#pragma once

#include <optional>

#include "base/clock.h"

namespace keel {

class Interrupts {
 public:
  // For an interrupt at `now`: whether the one before it came within 2 s.
  bool IsSecond(TimePoint now);

 private:
  std::optional<TimePoint> last_;
};

}  // namespace keel
