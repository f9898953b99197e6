// One thread with a low priority.
#include "base/idle_work.h"

#include <system_error>
#include <utility>

#include "base/thread_priority.h"

namespace keel {

IdleWork::IdleWork(Job job) {
  if (!job) return;
  try {
    thread_ = std::thread([this, moved = std::move(job)] {
      LetOthersFirst();
      moved(stop_);
    });
  } catch (const std::system_error&) {
    // No thread to be had: those whom it would have helped wait themselves.
  }
}

IdleWork::~IdleWork() {
  Stop();
  Wait();
}

void IdleWork::Wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace keel
