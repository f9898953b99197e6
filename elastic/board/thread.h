// BoardThread: runs one half of the board's protocol (Member or Coordinator) over a connection of
// its own, off the loop.
// Promises   polls when woken and when the poll said so, and never at the same time as a posted
//            job; after an error it makes a new connection, again and again, with pauses that grow
//            to a second. The destructor waits for a call to the store that is under way, and
//            lets no further one begin; an attempt to connect is cancelled, but for a name that is
//            being looked up.
// Does not   know what is polled.
// Threads    Post() and Wake() from any; `connect`, `poll`, `on_trouble`, `on_reason` and the jobs
//            run on the thread itself.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "store/cancel.h"
#include "store/store.h"

namespace keel {

class BoardThread {
 public:
  struct Turn {
    Status status;              // an error: the connection is given up
    bool reconnect = false;     // it is given up without an error: the board is elsewhere
    TimePoint next = kNever;    // when to poll again, unless woken before
  };
  struct Work {
    // `ending` is raised when nobody needs the connection any more.
    std::function<Result<std::unique_ptr<Store>>(const CancelToken& ending)> connect;
    std::function<Turn(Store& store, TimePoint now)> poll;
    // Called when the store cannot be reached any more, and with Ok when it can be reached again.
    std::function<void(const Status& status)> on_trouble;
    // Called between these with each further reason; may be left out.
    std::function<void(const Error& reason)> on_reason = {};
    Duration pause_most = std::chrono::seconds(1);   // between two attempts to connect
  };

  BoardThread(const std::string& name, Clock& clock, Work work);
  ~BoardThread();

  void Wake() { Post({}); }
  // The job runs before the next poll, even while there is no connection.
  void Post(std::function<void()> job, bool hurry = true);

 private:
  void Run();
  bool RunJobs();
  void Trouble(const Status& status);
  bool Connect();
  void WaitUntil(TimePoint when);

  Clock& clock_;
  const Work work_;
  const CancelToken ending_;   // raised with stopping_
  // Only the thread uses these.
  std::unique_ptr<Store> store_;
  std::optional<std::string> trouble_;   // as it was told last
  Duration pause_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  // mutex_ guards these.
  std::vector<std::function<void()>> jobs_;
  bool woken_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace keel
