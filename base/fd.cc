// Closing, making pipes, and waiting with poll().
#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace keel {
namespace {

// What poll() is to wait at most: rounded up, so that the deadline has passed after it, and in
// bites, so that kNever fits an int.
int PollMillis(TimePoint deadline) {
  using std::chrono::milliseconds;
  const Duration left = std::max(deadline - RealClock().Monotonic(), Duration(0));
  const Duration bite = std::min<Duration>(left, std::chrono::hours(1));
  return static_cast<int>(std::chrono::ceil<milliseconds>(bite).count());
}

}  // namespace

void Fd::Close() {
  // No retry after EINTR: on Linux the number is free by then and may be another's already.
  if (number_ >= 0) close(std::exchange(number_, -1));
}

Result<PipeEnds> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Error{Code::kForeign, std::string("making a pipe: ") + std::strerror(errno)};
  }
  return PipeEnds{Fd(ends[0]), Fd(ends[1])};
}

bool WaitReadable(const Fd& fd, TimePoint deadline) {
  KEEL_CHECK(fd.valid(), "waiting for a closed descriptor");
  for (;;) {
    pollfd waited{fd.number(), POLLIN, 0};
    const int count = poll(&waited, 1, PollMillis(deadline));
    if (count > 0) return true;
    KEEL_CHECK(count == 0 || errno == EINTR, "poll: " << std::strerror(errno));
    if (RealClock().Monotonic() >= deadline) return false;
  }
}

}  // namespace keel
