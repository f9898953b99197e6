// The thread's loop: it runs the posted jobs, connects if it has to, polls, and waits.
#include "elastic/board/thread.h"

#include <algorithm>
#include <utility>

#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr Duration kConnectPauseFirst = std::chrono::milliseconds(50);

}  // namespace

BoardThread::BoardThread(const std::string& name, Clock& clock, Work work)
    : clock_(clock), work_(std::move(work)) {
  thread_ = StartQuietThread(name, [this] { Run(); });
}

BoardThread::~BoardThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ending_.Cancel();
  changed_.notify_all();
  thread_.join();
}

void BoardThread::Post(std::function<void()> job, bool hurry) {
  {
    const std::lock_guard lock(mutex_);
    if (job) jobs_.push_back(std::move(job));
    woken_ |= hurry;
  }
  if (hurry) changed_.notify_all();
}

void BoardThread::Run() {
  while (RunJobs()) {
    if (!store_ && !Connect()) continue;
    Turn turn = work_.poll(*store_, clock_.Monotonic());
    Trouble(turn.status);
    if (!turn.status.ok()) {
      store_.reset();
      turn.next = clock_.Monotonic() + std::min(kConnectPauseFirst, work_.pause_most);
    }
    if (turn.reconnect) {
      store_.reset();
      continue;
    }
    WaitUntil(turn.next);
  }
}

// Returns false when the thread is to end.
bool BoardThread::RunJobs() {
  std::vector<std::function<void()>> jobs;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    jobs.swap(jobs_);
    woken_ = false;
  }
  for (const auto& job : jobs) job();
  return true;
}

bool BoardThread::Connect() {
  Result<std::unique_ptr<Store>> store = work_.connect(ending_);
  if (store.ok()) {
    store_ = *std::move(store);
    pause_ = Duration(0);
    return true;
  }
  if (ending_.cancelled()) return false;
  Trouble(store.error());
  pause_ = std::min(std::max(2 * pause_, kConnectPauseFirst), work_.pause_most);
  WaitUntil(clock_.Monotonic() + pause_);
  return false;
}

// Each reason is told, not each failure: the first one may pass by itself, and the one behind it
// may need the user.
void BoardThread::Trouble(const Status& status) {
  if (status.ok()) {
    if (!trouble_) return;
    trouble_.reset();
    return work_.on_trouble(status);
  }
  const bool is_first = !trouble_;
  if (trouble_ == status.error().message) return;
  trouble_ = status.error().message;
  if (is_first) return work_.on_trouble(status);
  if (work_.on_reason) work_.on_reason(status.error());
}

void BoardThread::WaitUntil(TimePoint when) {
  std::unique_lock lock(mutex_);
  const auto woken = [this] { return woken_ || stopping_; };
  if (when == kNever) return changed_.wait(lock, woken);
  const Duration left = when - clock_.Monotonic();
  if (left > Duration(0)) changed_.wait_for(lock, left, woken);
}

}  // namespace keel
