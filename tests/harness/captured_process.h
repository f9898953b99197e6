// CapturedProcess: one started program, with all it prints collected line by line and saved to a
// file.
// Promises   once AwaitEnd() has returned, Lines() holds all that the process itself printed. The
//            destructor ends it, its process group, and every process that has inherited its
//            environment, in whatever session it hides; it does not wait for ever.
// Does not   keep the order between stdout and stderr exact: they are two pipes.
//            Find a descendant that cleared its environment; the guard does
//            (tests/harness/guarded.h).
// Threads    made and destroyed in one thread, which must outlive it; the rest from any. One thread
//            of its own reads; `on_line` is called there.
// Errors     kTimeout; kCancelled: the process ended first.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "elastic/process/spawn.h"
#include "tests/harness/pattern.h"

namespace keel {

struct OutputLine {
  bool is_stderr = false;
  std::string text;
};

class CapturedProcess {
 public:
  using OnLine = std::function<void(const std::string& line)>;

  // Standard output and error of `spec` are replaced. Adds to the file `log_path`.
  static Result<std::unique_ptr<CapturedProcess>> Start(ChildSpec spec, const std::string& log_path,
                                                        OnLine on_line);
  ~CapturedProcess();

  // The n-th line since its start that matches, printed already or not.
  Result<std::string> AwaitLine(const Pattern& pattern, int occurrence, TimePoint deadline);
  // Its end, and all of its output.
  Result<ExitStatus> AwaitEnd(TimePoint deadline);

  Status Signal(int signal) { return child_.Signal(signal); }
  pid_t pid() const { return child_.pid(); }
  std::vector<OutputLine> Lines() const;
  // "pid 12, running" or "pid 12, exited with 3"
  std::string State() const;

 private:
  // One of the two pipes, and the part of a line that it has given so far.
  struct Source {
    Fd pipe;
    bool is_stderr = false;
    std::string partial;
  };

  CapturedProcess(Child child, std::string mark, PipeEnds stop, Fd log, OnLine on_line);

  void ReadAll();
  bool AnythingToRead() const;
  size_t ReadSome(Source& source, size_t bytes_max);
  void Drain(Source& source);
  void TakeLine(Source& source, std::string text);
  void NoteEnd();
  bool AwaitChange(std::unique_lock<std::mutex>& lock, TimePoint deadline);

  Child child_;
  const std::string mark_;     // in the environment of all who descend from it
  PipeEnds stop_;              // its write end closed: the reader leaves
  Fd log_;
  const OnLine on_line_;
  Source sources_[2];          // the reader's own

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OutputLine> lines_;            // guarded by mutex_
  bool drained_ = false;                     // guarded by mutex_: ended, and all it printed is read
  std::thread reader_;
};

}  // namespace keel
