// A shell in a group of its own, whose output is read until its end.
#include "store/s3/program_output.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"

extern char** environ;

namespace keel {
namespace {

constexpr size_t kBytesMax = size_t{1} << 20;
constexpr Duration kLook = std::chrono::milliseconds(5);

// The pid of `sh -c command`, whose output goes to `out`.
Result<pid_t> Start(const std::string& command, const Fd& out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.number(), 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  std::string text = command;
  std::array<char, 3> shell = {'s', 'h', 0};
  std::array<char, 3> option = {'-', 'c', 0};
  char* const argv[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  const int failure = posix_spawn(&pid, "/bin/sh", &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure == 0) return pid;
  return Error{Code::kForeign, std::string("no shell could be started: ") + strerror(failure)};
}

}  // namespace

Result<std::string> OutputOfProgram(const std::string& command, Duration limit) {
  const TimePoint end = RealClock().Monotonic() + limit;
  KEEL_TRY_ASSIGN(PipeEnds pipe, MakePipe());
  KEEL_TRY_ASSIGN(const pid_t pid, Start(command, pipe.write));
  pipe.write.Close();
  std::string output;
  bool is_in_time = true;
  for (std::array<char, 4096> piece; output.size() <= kBytesMax;) {
    is_in_time = WaitReadable(pipe.read, end);
    if (!is_in_time) break;
    const ssize_t got = read(pipe.read.number(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(piece.data(), static_cast<size_t>(got));
  }
  const bool is_long = output.size() > kBytesMax;
  int status = 0;
  // It may have closed its output, and live on.
  bool has_ended = false;
  while (is_in_time && !is_long && !has_ended) {
    has_ended = waitpid(pid, &status, WNOHANG) != 0;
    if (!has_ended) RealClock().SleepFor(kLook);
    is_in_time = has_ended || RealClock().Monotonic() < end;
  }
  if (!has_ended) {
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (!is_in_time) {
    return Error{Code::kTimeout, "it did not end within " + DurationText(limit)};
  }
  if (is_long) return Error{Code::kInvalid, "it prints more than " + BytesText(kBytesMax)};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return Error{Code::kInvalid,
               WIFEXITED(status) ? "it ended with code " + std::to_string(WEXITSTATUS(status))
                                 : "it was ended by signal " + std::to_string(WTERMSIG(status))};
}

}  // namespace keel
