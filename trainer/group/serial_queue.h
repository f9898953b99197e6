// SerialQueue: a thread that runs jobs one after the other, in the order they came.
// Promises   every job that was submitted runs, even while the queue is being destroyed.
// Does not   cut a job short: the owner makes sure that its jobs end before it destroys the queue.
// Threads    Submit() and Drain() from any but the queue's own; destroyed by another thread than
//            that.
// Errors     none: jobs do not throw.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace keel {

class SerialQueue {
 public:
  using Job = std::function<void()>;

  SerialQueue();
  ~SerialQueue();

  void Submit(Job job);
  // Returns once all jobs submitted before have ended.
  void Drain();
  // The same; false if they have not within that time.
  bool DrainFor(Duration time);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded by mutex_, as all below
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace keel
