// StatusLine: one line at the bottom of a terminal that shows the job's state; all else scrolls
// above.
// Promises   what is written above stays whole: the line is wiped before it and drawn again below.
//            The line never wraps: it is cut to the terminal's width. It is gone after Hide(), and
//            when this object is. A terminal that takes nothing delays neither threads that log
//            (their lines wait: elastic/process/log_queue.h) nor Show(), and Hide() only for a
//            moment. Even without the line, this keeps teed lines and the log apart: a terminal
//            takes a line in parts, and another writer's may come between them.
// Does not   share the terminal with a process that writes to it directly. Workers do if their
//            streams are inherited, which is the default, as in torchrun: programs then find the
//            terminal they expect (colours, progress bars, questions, no buffering), which a pipe
//            through us would take from them, and there is no status line. With --tee or
//            --redirects there is one: their output is then shown through LogTail.
// Threads    Show() and Hide() from one; Above() and log lines from any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "elastic/process/console.h"
#include "elastic/process/log_queue.h"
#include "elastic/protocol/records.h"
#include "store/cancel.h"

namespace keel {

// "epoch 3: 8 workers on 2 hosts, step 120, 1 failure here", "stopping (SIGTERM), epoch 3: ..."
std::string StatusText(const MemberRecord& host, const std::optional<EpochRecord>& epoch);

// The width of stderr's terminal; 80 if it tells none.
int TerminalColumns();

class StatusLine {
 public:
  // Takes over the log. Without `drawn` there is no line, as after Hide().
  explicit StatusLine(bool drawn = true);
  ~StatusLine();

  void Show(const std::string& text);
  // Hides the line for good; later lines are written as usual.
  void Hide();
  // Returns once the terminal has the log so far; false if `deadline` came first.
  bool Flush(TimePoint deadline) { return log_->Flush(deadline); }
  // Writes whole lines. False if not all was written, as for Console::Write().
  bool Above(std::string_view lines, const CancelToken& give_up);
  // Whether stdout is the same terminal.
  bool covers_stdout() const { return covers_stdout_; }

 private:
  // Returns how many bytes were written.
  size_t Log(std::string_view lines, const CancelToken& give_up);
  bool Write(std::string_view above, const CancelToken& give_up);

  const bool covers_stdout_;
  std::timed_mutex mutex_;
  Console console_;          // guarded by mutex_
  std::mutex text_mutex_;    // is never held for long, and locked last
  std::string text_;         // guarded by it
  std::atomic<bool> hidden_;
  std::unique_ptr<LogQueue> log_;   // ends first, since it writes here
};

}  // namespace keel
