// Runs planned events by time, and some of them in the middle of others.
#include "tests/sim/scheduler.h"

#include <algorithm>

namespace keel {

void Scheduler::At(TimePoint when, int host, Work work) {
  queue_.emplace(std::pair(std::max(when, now()), ++planned_), Event{host, std::move(work)});
}

bool Scheduler::RunNext(TimePoint limit) {
  if (queue_.empty() || queue_.begin()->first.first > limit) return false;
  Run(queue_.begin());
  return true;
}

void Scheduler::Run(Queue::iterator event) {
  clock_.MoveTo(event->first.first);
  const Event taken = std::move(event->second);
  queue_.erase(event);
  ++count_;
  const auto mark = busy_.insert(taken.host);
  taken.work();
  busy_.erase(mark);
}

void Scheduler::Interleave(int most, Duration ahead) {
  if (busy_.size() > 2 || busy_.count(kAlone) > 0) return;
  const TimePoint until = now() + ahead;
  for (int ran = 0; ran < most; ++ran) {
    const auto next = std::find_if(queue_.begin(), queue_.end(), [&](const auto& entry) {
      const int host = entry.second.host;
      return host == kNobody || (host != kAlone && busy_.count(host) == 0);
    });
    if (next == queue_.end() || next->first.first > until) return;
    Run(next);
  }
}

}  // namespace keel
