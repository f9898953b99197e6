// LogQueue: takes our log to a console that may accept nothing for a while (a terminal that was
// stopped, a pipe that nobody reads), so that no thread that logs waits for it.
// Promises   lines are written in order, by a thread of its own; at most 1 MiB of them wait, or one
//            line of any size. What does not fit is dropped, as is what cannot be written, and the
//            number of lost lines is written in their place, in the form of the log. A line of
//            which a part is lost is ended before the next one.
// Does not   keep waiting lines when the process is killed.
// Threads    lines from any. One queue at a time, since there is one log.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "store/cancel.h"

namespace keel {

class LogQueue {
 public:
  // Writes a line, line feed included; may wait until `give_up` is raised. Returns how many of its
  // bytes were written.
  using Write = std::function<size_t(std::string_view line, const CancelToken& give_up)>;

  // Takes the log over.
  explicit LogQueue(Write write);
  // Gives up what the console has not taken; call Flush() before, to wait for it. Later lines go
  // directly to stderr.
  ~LogQueue();

  // Adds whole lines that are not part of the log.
  void Add(std::string_view text);
  // Returns once all lines so far are written, and how many are lost if the last ones are; false
  // if `deadline` came first.
  bool Flush(TimePoint deadline);

 private:
  struct Line {
    std::string text;
    size_t stands_for = 1;   // so many lines are lost with it
  };
  void Run();
  void Push(Line line);
  void PushNote();
  bool AwaitEmpty(std::unique_lock<std::mutex>& lock, TimePoint deadline);

  const Write write_;
  CancelToken give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Line> lines_;          // guarded by mutex_, as the rest
  size_t bytes_ = 0;
  size_t missed_ = 0;               // lines since the last one that was taken
  bool is_json_ = false;            // as far as lines have shown
  bool writing_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace keel
