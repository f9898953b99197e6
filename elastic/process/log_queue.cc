// A bounded queue and one thread.
#include "elastic/process/log_queue.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr size_t kBytesMax = 1 << 20;

}  // namespace

LogQueue::LogQueue(Write write) : write_(std::move(write)) {
  thread_ = StartQuietThread("keel-log", [this] { Run(); });
  LogToCallback([this](std::string_view line) { Add(line); });
}

LogQueue::~LogQueue() {
  LogToStderr();
  give_up_.Cancel();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LogQueue::Add(std::string_view text) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  if (bytes_ + text.size() > kBytesMax) {
    ++missed_;
    return;
  }
  if (missed_ > 0) {
    lines_.push_back("... " + std::to_string(std::exchange(missed_, 0)) +
                     " lines of the log are missing here: stderr was not read in time ...\n");
    bytes_ += lines_.back().size();
  }
  lines_.emplace_back(text);
  bytes_ += text.size();
  changed_.notify_all();
}

void LogQueue::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (lines_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    bytes_ -= line.size();
    writing_ = true;
    lock.unlock();
    write_(line, give_up_);
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

bool LogQueue::Flush(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  while (!lines_.empty() || writing_) {
    const Duration left = deadline - RealClock().Monotonic();
    if (left <= Duration(0)) return false;
    changed_.wait_for(lock, std::min<Duration>(left, std::chrono::hours(1)));
  }
  return true;
}

}  // namespace keel
