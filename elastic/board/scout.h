// Scout: looks once a second, on a thread of its own, whether the job goes on elsewhere than on the
// board that this host keeps, and whether somebody waits for it at the endpoint.
// Promises   looks only while it has a task; what it finds is told from its thread. The destructor
//            waits for a look that is under way, which is cancelled.
// Does not   decide what is done about it (elastic/decisions/succession.h).
// Threads    Look() from any.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "elastic/board/finder.h"

namespace keel {

class Scout {
 public:
  struct Task {
    BoardPlace own;                   // the board that this host keeps
    std::vector<std::string> peers;   // to be asked beside those at the endpoints
  };
  // `on_ahead`: a board that is ahead was found.
  Scout(BoardFinder& finder, std::function<void(const BoardPlace& place)> on_ahead);
  ~Scout();

  // From now on; nothing: no more.
  void Look(std::optional<Task> task);

 private:
  void Run();

  BoardFinder& finder_;
  const std::function<void(const BoardPlace& place)> on_ahead_;
  const CancelToken ending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // mutex_ guards these.
  std::optional<Task> task_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace keel
