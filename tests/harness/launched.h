// Launched: a real `keelrun` that a test has started, with all that it and its workers print; or a
// program of its own.
// Promises   every wait ends; what went wrong is shown with all output so far.
// Threads    one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/harness/captured_process.h"
#include "tests/support/temp_dir.h"

namespace keel {

class Launched {
 public:
  // `arguments`: all behind "keelrun".
  Launched(const TempDir& folder, const std::string& name, std::vector<std::string> arguments,
           const Environment& environment = {});
  // Any program, without a launcher.
  struct Command {
    std::vector<std::string> argv;
  };
  Launched(const TempDir& folder, const std::string& name, Command command,
           const Environment& environment = {});

  // The n-th line of the launcher or a worker that matches the expression (as in grep -E), printed
  // already or not; empty, and the test has failed, if it does not come.
  std::string Await(const std::string& expression, int occurrence = 1);
  // -1, and the test has failed, if it does not end by itself.
  int ExitCode();
  void Signal(int signal);
  // SIGKILL, and its end.
  void Kill();

  pid_t pid() const;
  std::string Output() const;
  // How many lines match so far.
  int Count(const std::string& expression) const;

 private:
  std::unique_ptr<CapturedProcess> process_;
};

// Signals the process whose number follows "pid " in `line`. Without one the test fails, and nobody
// is signalled: kill() takes -1 for everybody.
void SignalPidIn(const std::string& line, int signal);

// How many processes that run have `mark` in the environment that they were started with.
int CountMarked(const std::string& mark);
// True once there is none, false if a limit against hanging passes.
bool AwaitNoneMarked(const std::string& mark);

// The number that follows `word` and a blank in `line`; -1: there is none.
int64_t NumberAfter(const std::string& line, const std::string& word);

}  // namespace keel
