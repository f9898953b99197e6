// CancelBell: what wakes somebody who waits where no flag can be looked at, as for the answer of a
// store that gives none.
// Promises   whoever hangs its wake-up is woken once it rings, also if it has rung before. After
//            TakeDown() it is not called, nor is it running.
// Threads    any; the wake-up runs in the thread that rings, or that hangs it.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace keel {

class CancelBell {
 public:
  void Hang(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
    if (has_rung_) wake_();
  }
  void TakeDown() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
  }
  void Ring() {
    const std::lock_guard lock(mutex_);
    has_rung_ = true;
    if (wake_ != nullptr) wake_();
  }
  void Reset() {
    const std::lock_guard lock(mutex_);
    has_rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::function<void()> wake_;   // guarded by mutex_; null: nobody waits
  bool has_rung_ = false;        // guarded by mutex_
};

}  // namespace keel
