// IdleWork: a job that helps but that nobody depends on, on a thread of its own.
// Promises   takes what processors others leave. Where no thread is to be had, it is left undone.
// Does not   go on behind its destructor, which asks it to stop and waits until it has.
// Threads    Stop() from any; the others from the one that made it. Jobs do not throw.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace keel {

class IdleWork {
 public:
  // Looks at `stop` often. Empty: there is nothing to do.
  using Job = std::function<void(const std::atomic<bool>& stop)>;
  explicit IdleWork(Job job);
  ~IdleWork();
  IdleWork(const IdleWork&) = delete;
  IdleWork& operator=(const IdleWork&) = delete;

  void Stop() { stop_ = true; }
  void Wait();   // until it is done, or was stopped

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace keel
