// One thread, one queue.
#include "trainer/group/serial_queue.h"

#include <utility>

namespace keel {

SerialQueue::SerialQueue() : thread_([this] { Run(); }) {}

SerialQueue::~SerialQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SerialQueue::Submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void SerialQueue::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.empty() && !busy_; });
}

bool SerialQueue::DrainFor(Duration time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return jobs_.empty() && !busy_; });
}

void SerialQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::exchange(jobs_.front(), {});
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    job = {};  // frees what it holds before anybody hears that it has ended
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace keel
