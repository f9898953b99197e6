// Clock: the one place where time comes in, so that tests and the simulator can drive it.
// Promises   Monotonic() never goes back; SleepUntil() returns at or after the time asked for.
// Does not   make sense of Monotonic() across hosts or restarts; Wall() is for people only.
// Threads    any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

namespace keel {

using Duration = std::chrono::nanoseconds;


// A point on the monotonic clock of one process.
struct TimePoint {
  Duration since_start{0};
  auto operator<=>(const TimePoint&) const = default;
};
constexpr TimePoint operator+(TimePoint a, Duration d) { return {a.since_start + d}; }
constexpr TimePoint operator-(TimePoint a, Duration d) { return {a.since_start - d}; }
constexpr Duration operator-(TimePoint a, TimePoint b) { return a.since_start - b.since_start; }
inline constexpr TimePoint kNever{Duration::max()};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Monotonic() = 0;
  // Nanoseconds since 1970, UTC: to be shown, never to be compared.
  virtual int64_t WallNanos() = 0;
  virtual void SleepUntil(TimePoint when) = 0;

  void SleepFor(Duration duration) { SleepUntil(Monotonic() + duration); }
};

// The machine's own clock.
Clock& RealClock();

// A clock that moves only when told. SleepUntil() waits for another thread's Advance().
class ManualClock : public Clock {
 public:
  TimePoint Monotonic() override;
  int64_t WallNanos() override;
  void SleepUntil(TimePoint when) override;

  void Advance(Duration duration);

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  TimePoint now_{};
};

// "1.5 s", "12 ms", "3 min 20 s": a duration as people say it.
std::string DurationText(Duration duration);

// "2026-11-21T08:30:00Z", of what WallNanos() gives.
std::string UtcText(int64_t wall_nanos);
// "08:30:00", UTC.
std::string TimeOfDayText(int64_t wall_nanos);

}  // namespace keel
