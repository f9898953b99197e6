// Scheduler: simulated time, and what happens when. One thread; the same calls give the same order.
// Promises   events run in order of time, those of one time in the order they were planned; time
//            moves only from event to event.
// Does not   know what an event does, but for whom: Interleave() runs none of a host that is busy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"

namespace keel {

// A clock that stands still between events.
class SimClock : public Clock {
 public:
  TimePoint Monotonic() override { return now_; }
  int64_t WallNanos() override { return now_.since_start.count(); }
  void SleepUntil(TimePoint) override {}
  void MoveTo(TimePoint when) { now_ = std::max(now_, when); }

 private:
  TimePoint now_{};
};

class Scheduler {
 public:
  using Work = std::function<void()>;
  static constexpr int kAlone = -1;   // never run in the middle of something else
  static constexpr int kNobody = -2;  // busy with nothing

  Clock& clock() { return clock_; }
  TimePoint now() { return clock_.Monotonic(); }

  // `host`: who is busy while it runs; kAlone, or kNobody.
  void At(TimePoint when, int host, Work work);
  void After(Duration delay, int host, Work work) { At(now() + delay, host, std::move(work)); }

  // False when there is nothing left up to `limit`.
  bool RunNext(TimePoint limit);

  // In the middle of an operation of a host: lets up to `most` of the events of the next `ahead`
  // happen first, as if the operation had taken that long.
  void Interleave(int most, Duration ahead);

  uint64_t count() const { return count_; }

 private:
  struct Event {
    int host;
    Work work;
  };
  using Queue = std::map<std::pair<TimePoint, uint64_t>, Event>;

  void Run(Queue::iterator event);

  SimClock clock_;
  Queue queue_;
  uint64_t planned_ = 0;
  uint64_t count_ = 0;
  std::multiset<int> busy_;
};

}  // namespace keel
