// SinkLink: a link of so many bytes a second, which all connections share.
// Promises   whoever has sent or received bytes is held until the link could have carried them.
// Threads    any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace keel {

class SinkLink {
 public:
  explicit SinkLink(double bytes_a_second) : rate_(bytes_a_second) {}   // 0: as fast as it goes

  void Carry(uint64_t bytes) {
    if (rate_ <= 0) return;
    const auto took = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
    TimePoint until;
    {
      const std::lock_guard lock(mutex_);
      free_at_ = std::max(free_at_, RealClock().Monotonic()) + took;
      until = free_at_;
    }
    RealClock().SleepUntil(until);
  }

 private:
  const double rate_;
  std::mutex mutex_;
  TimePoint free_at_{};
};

}  // namespace keel
