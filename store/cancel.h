// CancelToken: a flag that one thread raises and that others check while they wait.
// Promises   raising it is seen by every copy; it is never lowered.
// Does not   wake anybody: a waiter checks it every few milliseconds.
// Threads    any.
#pragma once

#include <atomic>
#include <memory>

namespace keel {

class CancelToken {
 public:
  CancelToken() : raised_(std::make_shared<std::atomic<bool>>(false)) {}

  // A token that nobody can raise.
  static const CancelToken& Never();

  void Cancel() const {
    if (raised_) raised_->store(true, std::memory_order_release);
  }
  bool cancelled() const { return raised_ && raised_->load(std::memory_order_acquire); }
  // False for Never(): a waiter need not check it.
  bool can_be_cancelled() const { return raised_ != nullptr; }

 private:
  explicit CancelToken(std::nullptr_t) {}

  std::shared_ptr<std::atomic<bool>> raised_;
};

}  // namespace keel
