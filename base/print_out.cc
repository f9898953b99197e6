// Behind stdio's buffer, straight to the descriptor.
#include "base/print_out.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace keel {
namespace {

struct Losses {
  std::mutex mutex;
  std::optional<Error> first;   // guarded by mutex
};

Losses& OwnLosses() {
  static Losses& losses = *new Losses;   // for a thread that still prints at the end
  return losses;
}

Error LossOf(int number) {
  const Code code = number == EPIPE                       ? Code::kPeerLost
                    : number == ENOSPC || number == EDQUOT ? Code::kNoSpace
                                                           : Code::kIo;
  return {code, std::string("writing to stdout: ") + std::strerror(number)};
}

// The caller holds the mutex.
Status Lost(Losses& losses, Error why) {
  if (!losses.first) {
    LogWarn("output-lost", {{"reason", why.message},
                            {"note", "what this program prints from now on is not in stdout"}});
    losses.first = why;
  }
  return why;
}

// Stdio remembers that it lost something, but not why; what it holds now says why.
Status FlushStdio(Losses& losses) {
  if (std::fflush(stdout) != 0) return Lost(losses, LossOf(errno));
  if (std::ferror(stdout) == 0) return Ok();
  return Lost(losses, {Code::kIo, "writing to stdout: an earlier line was lost"});
}

Status WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    if (wrote > 0) text.remove_prefix(static_cast<size_t>(wrote));
    if (wrote >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return LossOf(errno);
    pollfd full{STDOUT_FILENO, POLLOUT, 0};
    if (poll(&full, 1, -1) < 0 && errno != EINTR) return LossOf(errno);
  }
  return Ok();
}

}  // namespace

Status PrintOutText(std::string_view text) {
  Losses& losses = OwnLosses();
  const std::lock_guard lock(losses.mutex);
  // A text that stdio lost before this one is no reason to lose this one, too.
  (void)FlushStdio(losses);
  const Status written = WriteAll(text);
  return written.ok() ? written : Lost(losses, written.error());
}

void PrintOut(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  KEEL_CHECK(size >= 0, "no text can be made by the format '" << format << "'");
  std::vector<char> text(static_cast<size_t>(size) + 1);
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  (void)PrintOutText({text.data(), static_cast<size_t>(size)});
}

Status OutputStatus() {
  Losses& losses = OwnLosses();
  const std::lock_guard lock(losses.mutex);
  (void)FlushStdio(losses);
  return losses.first ? Status(*losses.first) : Ok();
}

}  // namespace keel
