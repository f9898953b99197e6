// SignalWishes: turns signals that ask a worker to stop (SIGTERM, SIGINT, SIGUSR1) or to save
// (SIGUSR2) into wishes that its loop checks, instead of an end in the middle of a step.
// Promises   from Open() on such a signal is a wish, whichever thread it comes to: one that was
//            there before and blocks nothing, or none but ours. Calls of the thread that opens and
//            of those that it begins later are not interrupted by them; but SIGINT may come to
//            these, whose calls the kernel then begins again, or most of them. SIGINT twice within
//            2 s does what it did before Open(), so it ends the program as a rule, whatever the
//            process's first thread waits for. At the end signals
//            do again what they did before, except for those whose handler somebody has replaced
//            meanwhile; what was sent before the end is a wish, unless another thread has just
//            taken it and not yet come to its handler. A child made by fork() has all of it as
//            before Open().
// Does not   take a wish back, or act on it. Ask what ignored a signal before: it is a wish, too.
// Threads    Open() and the end in one. Others any.
// Errors     kForeign: the kernel gave no descriptor; kInvalid: there is one already.
// Lifetime   one at a time in a process.
#pragma once

#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "store/cancel.h"

namespace keel {

class SignalWishes {
 public:
  static Result<std::unique_ptr<SignalWishes>> Open();
  ~SignalWishes();
  SignalWishes(const SignalWishes&) = delete;
  SignalWishes& operator=(const SignalWishes&) = delete;

  // Raised with the first wish to stop: waits for something else can take it as their token.
  const CancelToken& stop() const { return stop_; }
  // "SIGTERM"; empty if there is no wish.
  std::string reason() const;
  // Whether a save was asked for since the last call.
  bool TakeSave();

 private:
  explicit SignalWishes(Fd signals);
  void Run();

  const Fd signals_;
  CancelToken stop_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace keel
