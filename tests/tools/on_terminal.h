// Runs a command with a terminal of its own, as a user in front of a screen has it.
// Promises   what the screen was sent, all of it, stdout and stderr alike, with the terminal's line
//            ends turned back into '\n'; the exit code. Threads: call it while there is one only
//            (it forks).
#pragma once

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace keel {

struct OnScreen {
  int exit_code = -1;
  std::string text;
};

// A terminal throws away what it has not shown yet when Ctrl-C is typed; a test wants to read it.
inline void KeepOutputAtInterrupts(int terminal) {
  termios settings{};
  if (::tcgetattr(terminal, &settings) != 0) return;
  settings.c_lflag |= NOFLSH;
  ::tcsetattr(terminal, TCSANOW, &settings);
}

// `command` goes through the shell. TERM is xterm unless the command sets another one. `columns` 0:
// the terminal does not tell its width. `type`: what the user types, asked after each piece of
// output with all that is on the screen so far.
using Typist = std::function<std::string(const std::string& seen)>;
inline OnScreen RunOnTerminal(const std::string& command, unsigned short columns = 0,
                              const Typist& type = nullptr) {
  OnScreen screen;
  int master = -1;
  winsize size{24, columns, 0, 0};
  const pid_t child = ::forkpty(&master, nullptr, nullptr, columns > 0 ? &size : nullptr);
  if (child < 0) return screen;
  if (child == 0) {
    KeepOutputAtInterrupts(STDIN_FILENO);
    const std::string line = "unset NO_COLOR; export TERM=xterm; " + command;
    ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  char buffer[4096];
  // Ends with EIO once the last process on the terminal has let it go.
  for (ssize_t got; (got = ::read(master, buffer, sizeof buffer)) > 0;) {
    screen.text.append(buffer, static_cast<size_t>(got));
    const std::string keys = type ? type(screen.text) : "";
    if (!keys.empty() && ::write(master, keys.data(), keys.size()) < 0) break;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(master);
  if (WIFEXITED(status)) screen.exit_code = WEXITSTATUS(status);
  for (size_t at; (at = screen.text.find("\r\n")) != std::string::npos;) screen.text.erase(at, 1);
  return screen;
}

}  // namespace keel
