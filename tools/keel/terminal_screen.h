// TerminalScreen: the whole terminal of this process, for a command that people look at.
// Promises   the terminal is as it was before once the object is gone, and while the process is
//            stopped (Ctrl-Z); signals that end a process wait for that, and are told. What is
//            typed is not shown, and comes at once. Signals are as before afterwards.
// Does not   help where the process is killed by SIGKILL: `reset` does.
// Threads    one, which must be the only one: it blocks signals.
// Errors     kInvalid: stdin or stdout is no terminal; kIo.
#pragma once

#include <signal.h>
#include <termios.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace keel {

class TerminalScreen {
 public:
  struct Size {
    size_t width = 80;
    size_t height = 24;
  };
  enum class Woke { kSocket, kKeys, kRedraw, kEnd, kTime };

  static Result<std::unique_ptr<TerminalScreen>> Open();
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  Size size() const;
  Status Draw(const std::vector<std::string>& lines);
  // Until the socket (-1: none) can be read or written to, something was typed, the screen must be
  // drawn again, the process shall end, or the deadline has come.
  Woke Wait(int socket, bool to_write, TimePoint deadline, Clock& clock);
  std::string TakeKeys();
  // The signal that shall end the process; 0: none came.
  int ended_by() const { return ended_by_; }

 private:
  TerminalScreen() = default;
  void Enter();
  void Leave();
  Woke OnSignal();
  Woke OnTyped();

  termios before_{};
  sigset_t mask_before_{};
  Fd signals_;
  std::string keys_;
  int ended_by_ = 0;
};

}  // namespace keel
