// Handoff: two threads that work in turn, as the two sides of a coroutine: the engine asks for a
// task to be done, and waits for the answer; the script takes tasks and answers them.
// Promises   a task is taken once, and answered once. After Fail() each Ask() gives that failure,
//            the first one; after End() Next() gives nothing.
//
//            state      Ask()           Next()         Answer()        Fail()   End()
//            open       -> asked        waits          refused         failed   ended
//            asked      (by one only)   -> taken       refused         failed   ended
//            taken      (by one only)   refused        -> open         failed   ended
//            failed     the failure     waits          the failure     -        ended
//            ended      a failure       ended          a failure       -        -
// Threads    Ask() and End() by one, all others by another one.
// Errors     kForeign: what the script failed with. kInvalid: a call out of turn.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

template <class Task, class Answer>
class Handoff {
 public:
  struct Taken {
    std::optional<Task> task = {};   // empty: nobody asked within the limit, or it has ended
    bool ended = false;
  };

  Result<Answer> Ask(Task task) {
    std::unique_lock lock(mutex_);
    if (!failure_) {
      state_ = State::kAsked;
      task_ = std::move(task);
      changed_.notify_all();
      changed_.wait(lock, [&] { return failure_ || answer_; });
    }
    if (failure_) return *failure_;
    return *std::exchange(answer_, std::nullopt);
  }

  void End() {
    const std::lock_guard lock(mutex_);
    Close(State::kEnded, {Code::kInvalid, "the training has ended"});
  }

  Result<Taken> Next(Duration limit) {
    std::unique_lock lock(mutex_);
    if (state_ == State::kTaken) {
      return Error{Code::kInvalid, "a task was asked for before the one before it was answered"};
    }
    changed_.wait_for(lock, limit, [&] {
      return state_ == State::kAsked || state_ == State::kEnded;
    });
    if (state_ == State::kEnded) return Taken{.ended = true};
    if (state_ != State::kAsked) return Taken{};
    state_ = State::kTaken;
    return Taken{std::exchange(task_, std::nullopt)};
  }

  Status Reply(Answer answer) {
    const std::lock_guard lock(mutex_);
    if (failure_) return *failure_;
    if (state_ != State::kTaken) {
      return Error{Code::kInvalid, "an answer was given that nobody waits for"};
    }
    state_ = State::kOpen;
    answer_ = std::move(answer);
    changed_.notify_all();
    return Ok();
  }

  void Fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!failure_) Close(State::kFailed, {Code::kForeign, why});
  }

 private:
  enum class State { kOpen, kAsked, kTaken, kFailed, kEnded };

  void Close(State state, Error failure) {
    state_ = state;
    if (!failure_) failure_ = std::move(failure);
    task_.reset();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as all below.
  State state_ = State::kOpen;
  std::optional<Task> task_;
  std::optional<Answer> answer_;
  std::optional<Error> failure_;
};

}  // namespace keel
