// AbortTrace: a test that aborts says from where.
// Promises   on SIGABRT each frame of the thread that aborted is on stderr, then the process dies
//            of the signal as before.
// Does not   name functions that are in no dynamic symbol table: addr2line does, given the offset.
// Why        c10d, Gloo and libuv have threads that abort without a word.
#pragma once

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace keel {

inline void PrintAbortTrace(int) {
  constexpr std::string_view kTitle = "aborted at:\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kTitle.data(), kTitle.size());
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  raise(SIGABRT);  // whoever sent it, the next one ends the process (SA_RESETHAND)
}

inline void InstallAbortTrace() {
  void* first[1];
  backtrace(first, 1);  // loads what it needs, which a signal handler must not
  struct sigaction action {};
  action.sa_handler = PrintAbortTrace;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGABRT, &action, nullptr);
}

}  // namespace keel
