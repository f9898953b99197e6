// One thread per save, joined when its outcome is taken.
#include "ckpt/background.h"

#include <system_error>
#include <utility>

#include "base/thread_priority.h"

namespace keel {

BackgroundSave::~BackgroundSave() {
  Cancel();
  if (thread_.joinable()) thread_.join();
}

Status BackgroundSave::Start(Request request) {
  const std::lock_guard lock(mutex_);
  if (in_flight_) {
    return Error{Code::kExists, "a save is in flight already: wait for its outcome first"};
  }
  progress_.cancel = false;
  progress_.bell.Reset();
  progress_.hurry = false;
  progress_.bytes_done = 0;
  progress_.bytes_total = 0;
  request.options.progress = &progress_;
  try {
    thread_ = std::thread([this, moved = std::move(request)]() mutable { Run(std::move(moved)); });
  } catch (const std::system_error& error) {
    return Error{Code::kForeign, std::string("no thread for a background save: ") + error.what()};
  }
  in_flight_ = true;
  return Ok();
}

void BackgroundSave::Run(Request request) {
  if (!request.awaited) LetOthersFirst();
  const TimePoint begin = clock_.Monotonic();
  Outcome outcome = Work(request);
  outcome.took = clock_.Monotonic() - begin;
  request.source = nullptr;  // a caller that sees done() may change the tensors again
  const std::lock_guard lock(mutex_);
  outcome_ = std::move(outcome);
  ended_.notify_all();
}

BackgroundSave::Outcome BackgroundSave::Work(Request& request) {
  Outcome outcome;
  auto save = Save::Begin(files_, std::move(request.plan));
  if (!save.ok()) {
    outcome.status = save.error();
    return outcome;
  }
  auto shard = (*save)->WriteShard(*request.source, request.options);
  if (!shard.ok()) {
    outcome.status = shard.error();
    return outcome;
  }
  outcome.shard = *shard;
  if (!request.commit) {
    outcome.save = std::move(*save);
    return outcome;
  }
  auto committed = (*save)->Commit(clock_.WallNanos());
  if (committed.ok()) {
    outcome.committed = std::move(*committed);
  } else {
    (*save)->Abandon();
    outcome.status = committed.error();
  }
  return outcome;
}

bool BackgroundSave::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

bool BackgroundSave::done() const {
  const std::lock_guard lock(mutex_);
  return outcome_.has_value();
}

bool BackgroundSave::AwaitDone(Duration limit) const {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, limit, [&] { return outcome_.has_value(); });
}

Result<BackgroundSave::Outcome> BackgroundSave::Take() {
  std::unique_lock lock(mutex_);
  if (!in_flight_) return Error{Code::kNotFound, "no save is in flight"};
  ended_.wait(lock, [&] { return outcome_.has_value() || !in_flight_; });
  if (!in_flight_) return Error{Code::kNotFound, "the outcome was taken by another thread"};
  thread_.join();  // all it still has to do is to release the lock
  Outcome outcome = std::move(*outcome_);
  outcome_.reset();
  in_flight_ = false;
  ended_.notify_all();
  return outcome;
}

}  // namespace keel
