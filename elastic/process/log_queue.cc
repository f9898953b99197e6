// A bounded queue and one thread.
#include "elastic/process/log_queue.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr size_t kBytesMax = 1 << 20;

std::string NoteOf(size_t missed, bool is_json) {
  if (!is_json) {
    return "... " + std::to_string(missed) +
           " lines of the log are missing here: stderr did not take them ...\n";
  }
  return DumpJson({{"time", UtcText(RealClock().WallNanos())},
                   {"level", "warn"},
                   {"event", "log-lines-missing"},
                   {"lines", missed},
                   {"reason", "stderr did not take them"}}) +
         "\n";
}

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
  is_json_ = text.starts_with("{\"");   // a line of text begins with its time
  if (!lines_.empty() && bytes_ + text.size() > kBytesMax) {
    ++missed_;
    return;
  }
  PushNote();
  Push({std::string(text)});
  changed_.notify_all();
}

void LogQueue::Push(Line line) {
  bytes_ += line.text.size();
  lines_.push_back(std::move(line));
}

// If lines are missing at this place.
void LogQueue::PushNote() {
  const size_t missed = std::exchange(missed_, 0);
  if (missed > 0) Push({NoteOf(missed, is_json_), missed});
}

void LogQueue::Run() {
  bool is_torn = false;   // the last line that got anywhere has no end
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (lines_.empty()) {
      changed_.wait(lock);
      continue;
    }
    Line line = std::move(lines_.front());
    lines_.pop_front();
    bytes_ -= line.text.size();
    if (is_torn) line.text.insert(0, 1, '\n');
    writing_ = true;
    lock.unlock();
    const size_t written = write_(line.text, give_up_);
    lock.lock();
    writing_ = false;
    const bool is_whole = written == line.text.size();
    if (written > 0) is_torn = !is_whole;
    if (!is_whole) missed_ += line.stands_for;
    changed_.notify_all();
  }
}

bool LogQueue::AwaitEmpty(std::unique_lock<std::mutex>& lock, TimePoint deadline) {
  while (!lines_.empty() || writing_) {
    const Duration left = deadline - RealClock().Monotonic();
    if (left <= Duration(0)) return false;
    changed_.wait_for(lock, std::min<Duration>(left, std::chrono::hours(1)));
  }
  return true;
}

bool LogQueue::Flush(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  if (!AwaitEmpty(lock, deadline)) return false;
  PushNote();   // there may be no further line to bring it
  changed_.notify_all();
  return AwaitEmpty(lock, deadline);
}

}  // namespace keel
