// One look, then a pause.
#include "elastic/board/scout.h"

#include <utility>

#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr Duration kPause = std::chrono::seconds(1);

}  // namespace

Scout::Scout(BoardFinder& finder, std::function<void(const BoardPlace& place)> on_ahead)
    : finder_(finder), on_ahead_(std::move(on_ahead)) {
  thread_ = StartQuietThread("scout", [this] { Run(); });
}

Scout::~Scout() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ending_.Cancel();
  changed_.notify_all();
  thread_.join();
}

void Scout::Look(std::optional<Task> task) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = task && !task_;
    task_ = std::move(task);
  }
  if (is_new) changed_.notify_all();
}

void Scout::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [this] { return stopping_ || task_; });
    if (stopping_) return;
    const Task task = *task_;
    lock.unlock();
    if (const auto ahead = finder_.Scout(task.own, task.peers, ending_)) on_ahead_(*ahead);
    lock.lock();
    changed_.wait_for(lock, kPause, [this] { return stopping_; });
  }
}

}  // namespace keel
