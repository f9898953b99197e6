// HostClock: the time of one host, whose timers run a little faster or slower than true time does.
// Promises   it never goes back, and TrueTime() is the first moment at which it shows that time.
// Does not   jump. Nothing but durations passes from host to host, so clocks are never compared.
// Threads    one.
#pragma once

#include "base/clock.h"

namespace keel {

class HostClock : public Clock {
 public:
  static constexpr int64_t kParts = 100'000;

  // `drift`: how much faster than true time, in parts of 100,000.
  HostClock(Clock& truth, int drift) : truth_(truth), rate_(kParts + drift) {}

  TimePoint Monotonic() override { return {Local(truth_.Monotonic().since_start)}; }
  int64_t WallNanos() override { return truth_.WallNanos(); }
  void SleepUntil(TimePoint) override {}

  TimePoint TrueTime(TimePoint local) const {
    return local == kNever ? kNever : TimePoint{TrueLength(local.since_start)};
  }
  // Enough of true time for so much to pass here.
  Duration TrueLength(Duration local) const {
    return Duration((local.count() * kParts + rate_ - 1) / rate_);
  }

 private:
  Duration Local(Duration truth) const { return Duration(truth.count() * rate_ / kParts); }

  Clock& truth_;
  const int64_t rate_;
};

}  // namespace keel
