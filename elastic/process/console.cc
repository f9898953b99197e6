// Small pieces, each after poll() has said that there is room.
#include "elastic/process/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace keel {
namespace {

constexpr size_t kPieceBytes = 4096;   // a pipe takes so much whole or not at all
constexpr int kGlanceMs = 50;

// As many whole lines as fit into one piece; of a longer line, a part.
std::string_view FirstPiece(std::string_view text) {
  if (text.size() <= kPieceBytes) return text;
  const size_t end = text.substr(0, kPieceBytes).rfind('\n');
  return text.substr(0, end == std::string_view::npos ? kPieceBytes : end + 1);
}

}  // namespace

Console::Console(int number) : number_(number) {
  struct stat status {};
  if (fstat(number, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  // A file must not be opened anew: all holders of the stream share its one offset.
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
  const std::string path = "/proc/self/fd/" + std::to_string(number);
  own_ = Fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool Console::Write(std::string_view text, const CancelToken& give_up) {
  error_ = 0;
  while (!text.empty()) {
    missed_ = text.size();
    if (give_up.cancelled()) return false;
    pollfd room{own_.valid() ? own_.number() : number_, POLLOUT, 0};
    const int count = poll(&room, 1, kGlanceMs);
    if (count == 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0) {
      error_ = errno;
      return false;
    }
    const int64_t wrote = WritePiece(FirstPiece(text));
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (wrote < 0) {
      error_ = errno;
      return false;
    }
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  missed_ = 0;
  return true;
}

int64_t Console::WritePiece(std::string_view piece) {
  if (own_.valid()) return write(own_.number(), piece.data(), piece.size());
  if (is_socket_) return send(number_, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return write(number_, piece.data(), piece.size());
}

bool IsOneTerminal(int a, int b) {
  struct stat of_a {}, of_b {};
  return isatty(a) == 1 && isatty(b) == 1 && fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 &&
         of_a.st_rdev == of_b.st_rdev;
}

}  // namespace keel
