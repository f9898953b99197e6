// LoadAhead: loads what the next lanes will need on threads of its own, while the trainer computes.
// A worker asks for lane after lane of step after step. One request tells which ones follow, so
// these are loaded before they are asked for.
// Promises   Take() returns what `load` gives for that very request, whatever was loaded ahead:
//            after a break, a redone step, or other lanes, what still fits is kept and the rest
//            thrown away. At most `ahead` requests are loaded or held. An error appears when its
//            request is taken, and a later request is loaded anew.
// Does not   load for another request than `load` was given; cut a load short: the destructor
//            waits for those under way.
// Threads    Take() by one at a time; `load` is called by `threads` at once, and does not throw.
// Errors     those of `load`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_priority.h"
#include "trainer/numerics/lanes.h"

namespace keel {

struct LoadRequest {
  uint64_t step = 0;
  uint64_t cursor = 0;   // of the step
  int lane = 0;
  bool operator==(const LoadRequest&) const = default;
};

// The order in which a worker asks.
struct LoadOrder {
  LaneRange lanes;                 // its own: not empty
  uint64_t samples_per_step = 0;
  uint64_t steps = 0;              // the job's: nothing is loaded beyond them
  bool operator==(const LoadOrder&) const = default;

  std::optional<LoadRequest> After(const LoadRequest& request) const;
};

template <class Value>
class LoadAhead {
 public:
  using Load = std::function<Result<Value>(const LoadRequest& request)>;
  struct Spec {
    Load load;
    int threads = 1;
    size_t ahead = 2;   // requests
  };

  explicit LoadAhead(Spec spec) : spec_(std::move(spec)) {
    try {
      for (int i = 0; i < spec_.threads; ++i) threads_.emplace_back([this] { Run(); });
    } catch (const std::system_error&) {   // the system gives no more
      if (threads_.empty()) throw;
    }
  }
  ~LoadAhead() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  LoadAhead(const LoadAhead&) = delete;
  LoadAhead& operator=(const LoadAhead&) = delete;

  Result<Value> Take(const LoadRequest& request, const LoadOrder& order) {
    std::unique_lock lock(mutex_);
    if (slots_.empty() || slots_.front()->request != request || order_ != order) {
      Plan(request, order);
      changed_.notify_all();
    }
    const std::shared_ptr<Slot> slot = slots_.front();
    changed_.wait(lock, [&] { return slot->value.has_value(); });
    slots_.pop_front();
    Extend(slot->request);
    changed_.notify_all();
    return std::move(*slot->value);
  }

  // One that is not in that order: it is loaded next. What is loaded ahead stays.
  Result<Value> TakeBeside(const LoadRequest& request) {
    std::unique_lock lock(mutex_);
    const auto slot = beside_ = std::make_shared<Slot>(Slot{request});
    changed_.notify_all();
    changed_.wait(lock, [&] { return slot->value.has_value(); });
    return std::move(*slot->value);
  }

 private:
  struct Slot {
    LoadRequest request;
    bool started = false;
    std::optional<Result<Value>> value = {};
  };

  // Makes slots for the requests from `request` on; those that exist already are kept.
  void Plan(const LoadRequest& request, const LoadOrder& order) {
    const auto old = std::exchange(slots_, {});
    order_ = order;
    std::optional<LoadRequest> next = request;
    while (next && (slots_.empty() || slots_.size() < spec_.ahead)) {
      slots_.push_back(Kept(old, *next));
      next = order_.After(*next);
    }
  }

  static std::shared_ptr<Slot> Kept(const std::deque<std::shared_ptr<Slot>>& old,
                                    const LoadRequest& request) {
    for (const std::shared_ptr<Slot>& slot : old) {
      if (slot->request == request) return slot;
    }
    return std::make_shared<Slot>(Slot{request});
  }

  void Extend(const LoadRequest& taken) {
    const LoadRequest& last = slots_.empty() ? taken : slots_.back()->request;
    std::optional<LoadRequest> next = order_.After(last);
    while (next && slots_.size() < spec_.ahead) {
      slots_.push_back(std::make_shared<Slot>(Slot{*next}));
      next = order_.After(*next);
    }
  }

  std::shared_ptr<Slot> Unstarted() const {
    if (beside_ && !beside_->started) return beside_;
    for (const std::shared_ptr<Slot>& slot : slots_) {
      if (!slot->started) return slot;
    }
    return nullptr;
  }

  void Run() {
    DoNotPreempt();   // the trainer has several batches before it needs this one
    std::unique_lock lock(mutex_);
    for (;;) {
      std::shared_ptr<Slot> slot;
      changed_.wait(lock, [&] { return stopping_ || (slot = Unstarted()) != nullptr; });
      if (stopping_) return;
      slot->started = true;
      lock.unlock();
      Result<Value> value = spec_.load(slot->request);
      lock.lock();
      slot->value = std::move(value);
      changed_.notify_all();
    }
  }

  const Spec spec_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as all below. The next request comes first.
  std::deque<std::shared_ptr<Slot>> slots_;
  LoadOrder order_;
  std::shared_ptr<Slot> beside_;   // asked for beside them; null: nothing was
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace keel
