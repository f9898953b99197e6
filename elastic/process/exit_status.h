// ExitStatus: how a process ended, by itself with a code or by a signal.
// Threads    a plain value.
#pragma once

#include <string>

namespace keel {

struct ExitStatus {
  enum class Kind { kExited, kSignalled };

  Kind kind = Kind::kExited;
  int number = 0;             // the exit code, or the signal
  bool core_dumped = false;

  static ExitStatus Exited(int code) { return {Kind::kExited, code, false}; }
  static ExitStatus Killed(int signal) { return {Kind::kSignalled, signal, false}; }

  bool ok() const { return kind == Kind::kExited && number == 0; }
  bool KilledBy(int signal) const { return kind == Kind::kSignalled && number == signal; }
  // "exited with 3", "killed by signal 9 (SIGKILL)", "killed by signal 6 (SIGABRT), core dumped"
  std::string Text() const;

  bool operator==(const ExitStatus&) const = default;
};

// "SIGKILL"; a number that has no name is given as such: "signal 40".
std::string SignalName(int signal);

}  // namespace keel
