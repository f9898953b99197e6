// StatusLine: one line at the bottom of a terminal that says how the job is; all else runs above.
// Promises   what is written above stays whole: the line is wiped before it and drawn again below.
//            The line never wraps: it is cut to the terminal's width. It is gone after Hide(), and
//            when this object is. A terminal that takes nothing holds up neither who logs (its
//            lines wait: elastic/process/log_queue.h) nor Show(), and Hide() for a moment only.
//            Without the line it still keeps teed lines and the log apart: a terminal takes a line
//            in parts, and another writer's may come between them.
// Does not   share the terminal with a process that writes to it by itself. Workers do where their
//            streams are inherited, which is the default, as in torchrun: then programs find the
//            terminal they expect (colours, progress bars, questions, no buffering), which a pipe
//            through us would take from them, and there is no status line. With --tee, or with
//            --redirects, it is there: what is shown then comes through LogTail.
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

// The width of stderr's terminal; 80 where it tells none.
int TerminalColumns();

class StatusLine {
 public:
  // Takes the log over. Without `drawn` there is no line, as after Hide().
  explicit StatusLine(bool drawn = true);
  ~StatusLine();

  void Show(const std::string& text);
  // For good; lines that come later are written as ever.
  void Hide();
  // Once the terminal has the log so far; false if `deadline` came first.
  bool Flush(TimePoint deadline) { return log_->Flush(deadline); }
  // Whole lines. False when not all was written, as with Console::Write().
  bool Above(std::string_view lines, const CancelToken& give_up);
  // Whether stdout is that same terminal.
  bool covers_stdout() const { return covers_stdout_; }

 private:
  bool Write(std::string_view above, const CancelToken& give_up);

  const bool covers_stdout_;
  std::timed_mutex mutex_;
  Console console_;          // guarded by mutex_, as text_
  std::string text_;
  std::atomic<bool> hidden_;
  std::unique_ptr<LogQueue> log_;   // ends first: it writes here
};

}  // namespace keel
