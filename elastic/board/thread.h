// BoardThread: runs one half of the board's protocol (Member or Coordinator) over a connection of
// its own, off the loop.
// Promises   polls when woken and when the poll said so, and never at the same time as a posted
//            job; after an error it makes a new connection, again and again, with pauses that grow
//            to a second. The destructor lets a call to the store that runs end, and no further one
//            begin.
// Does not   know what is polled.
// Threads    Post() and Wake() from any; `connect`, `poll`, `on_trouble` and the jobs run on the
//            thread itself.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace keel {

class BoardThread {
 public:
  struct Turn {
    Status status;              // an error: the connection is of no more use
    TimePoint next = kNever;    // when to poll again, unless woken before
  };
  struct Work {
    std::function<Result<std::unique_ptr<Store>>()> connect;
    std::function<Turn(Store& store, TimePoint now)> poll;
    // The store cannot be reached, or can be again (Ok).
    std::function<void(const Status& status)> on_trouble;
  };

  BoardThread(const std::string& name, Clock& clock, Work work);
  ~BoardThread();

  void Wake() { Post({}); }
  // Runs before the next poll, also while there is no connection.
  void Post(std::function<void()> job, bool hurry = true);

 private:
  void Run();
  bool RunJobs();
  void Trouble(const Status& status);
  bool Connect();
  void WaitUntil(TimePoint when);

  Clock& clock_;
  const Work work_;
  std::unique_ptr<Store> store_;            // the thread's own, as the next two
  bool in_trouble_ = false;
  Duration pause_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> jobs_;   // guarded by mutex_, as the rest
  bool woken_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace keel
