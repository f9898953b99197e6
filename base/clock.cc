// The machine's clock and the hand-driven one.
#include "base/clock.h"

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <thread>

namespace keel {
namespace {

class SystemClock : public Clock {
 public:
  TimePoint Monotonic() override {
    return {std::chrono::duration_cast<Duration>(
        std::chrono::steady_clock::now().time_since_epoch())};
  }
  int64_t WallNanos() override {
    return std::chrono::duration_cast<Duration>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  void SleepUntil(TimePoint when) override {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(when.since_start));
  }
};

}  // namespace

Clock& RealClock() {
  static SystemClock& clock = *new SystemClock;   // threads may outlive static objects
  return clock;
}

TimePoint ManualClock::Monotonic() {
  std::lock_guard lock(mutex_);
  return now_;
}

int64_t ManualClock::WallNanos() { return Monotonic().since_start.count(); }

void ManualClock::SleepUntil(TimePoint when) {
  std::unique_lock lock(mutex_);
  moved_.wait(lock, [&] { return now_ >= when; });
}

void ManualClock::Advance(Duration duration) {
  {
    std::lock_guard lock(mutex_);
    now_ = now_ + duration;
  }
  moved_.notify_all();
}

std::string DurationText(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  const int64_t whole = duration / std::chrono::seconds(1);   // 9e9 of them are no `int`
  std::array<char, 48> text{};
  // What would be rounded to 1000 of a unit is 1 of the next one.
  if (seconds < 0.9995e-3) {
    std::snprintf(text.data(), text.size(), "%.0f us", seconds * 1e6);
  } else if (seconds < 0.9995) {
    std::snprintf(text.data(), text.size(), "%.3g ms", seconds * 1e3);
  } else if (seconds < 60) {
    std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text.data(), text.size(), "%" PRId64 " min %" PRId64 " s", whole / 60,
                  whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%" PRId64 " h %" PRId64 " min", whole / 3600,
                  whole % 3600 / 60);
  }
  return text.data();
}

std::string UtcText(int64_t wall_nanos) {
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const std::time_t seconds = wall_nanos / kNanosPerSecond;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, size};
}

std::string TimeOfDayText(int64_t wall_nanos) {
  constexpr size_t kDateBytes = 11;   // "2026-11-21T"
  constexpr size_t kTimeBytes = 8;
  return UtcText(wall_nanos).substr(kDateBytes, kTimeBytes);
}

}  // namespace keel
