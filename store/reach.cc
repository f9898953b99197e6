// Connects, hangs up, and repeats with growing pauses while the other side refuses.
#include "store/reach.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "store/host_port.h"
#include "store/store_hail.h"

namespace keel {
namespace {

constexpr Duration kPauseFirst = std::chrono::milliseconds(2);
constexpr Duration kPauseLast = std::chrono::milliseconds(250);
// How long a wait that can be cancelled goes on before it looks whether it was.
constexpr Duration kCancelLook = std::chrono::milliseconds(20);

Error NotReached(const std::string& number, uint16_t port, Duration limit, int cause) {
  const std::string where = number + ":" + std::to_string(port);
  const std::string after = "no store at " + where + " within " + DurationText(limit);
  if (cause == ECONNREFUSED) {
    return {Code::kTimeout,
            after + ": nobody listens there; check that its host runs, and the port"};
  }
  return {Code::kTimeout,
          after + ": " + strerror(cause) + "; check the address, routes and firewalls between"};
}

// To be freed with freeaddrinfo(); null: that is no numeric address.
addrinfo* NumericTarget(const std::string& number, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* address = nullptr;
  const std::string service = std::to_string(port);
  return getaddrinfo(number.c_str(), service.c_str(), &hints, &address) == 0 ? address : nullptr;
}

// Whether `fd` is ready for that before `end`. It looks at `cancel` in between.
bool AwaitReady(int fd, short events, TimePoint end, const CancelToken& cancel) {
  while (!cancel.cancelled()) {
    const Duration left = std::max(end - RealClock().Monotonic(), Duration::zero());
    const Duration slice = cancel.can_be_cancelled() ? std::min(left, kCancelLook) : left;
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(slice).count();
    pollfd waiting{fd, events, 0};
    if (poll(&waiting, 1, static_cast<int>(std::min<int64_t>(milliseconds, 1 << 30))) == 1) {
      return true;
    }
    if (left <= slice) return false;
  }
  return false;
}

Error Cancelled() { return {Code::kCancelled, "the search for a store was cancelled"}; }

// Returns early if it is cancelled.
void Pause(TimePoint until, const CancelToken& cancel) {
  while (!cancel.cancelled()) {
    const TimePoint now = RealClock().Monotonic();
    if (now >= until) return;
    RealClock().SleepUntil(cancel.can_be_cancelled() ? std::min(now + kCancelLook, until) : until);
  }
}

// One attempt after the other.
Result<Fd> ConnectUntil(const std::string& number, uint16_t port, Duration limit,
                        const CancelToken& cancel) {
  addrinfo* const address = NumericTarget(number, port);
  if (address == nullptr) {
    return Error{Code::kInvalid, "'" + number + "' is not a numeric address"};
  }
  const TimePoint end = RealClock().Monotonic() + limit;
  int failure = 0;
  Fd connection;
  for (Duration pause = kPauseFirst;; pause = std::min(pause * 2, kPauseLast)) {
    connection = Fd(ConnectOnce(*address, end, &failure, cancel));
    const TimePoint now = RealClock().Monotonic();
    if (failure == 0 || now >= end || cancel.cancelled()) break;
    Pause(std::min(now + pause, end), cancel);
  }
  freeaddrinfo(address);
  if (failure == 0) return connection;
  if (cancel.cancelled()) return Cancelled();
  return NotReached(number, port, limit, failure);
}

}  // namespace

int ConnectOnce(const addrinfo& address, TimePoint end, int* cause, const CancelToken& cancel) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    *cause = errno;
    return -1;
  }
  *cause = connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (*cause == EINPROGRESS) {
    *cause = ETIMEDOUT;
    socklen_t bytes = sizeof *cause;
    if (AwaitReady(fd, POLLOUT, end, cancel)) getsockopt(fd, SOL_SOCKET, SO_ERROR, cause, &bytes);
    if (*cause != 0 && cancel.cancelled()) *cause = ECANCELED;
  }
  if (*cause == 0) return fd;
  close(fd);
  return -1;
}

Reached ReachOnce(const std::string& number, uint16_t port, Duration limit,
                  const CancelToken& cancel) {
  addrinfo* const address = NumericTarget(number, port);
  if (address == nullptr) return Reached::kNothing;
  int failure = 0;
  const int fd = ConnectOnce(*address, RealClock().Monotonic() + limit, &failure, cancel);
  freeaddrinfo(address);
  if (fd >= 0) close(fd);
  if (fd >= 0) return Reached::kListener;
  return failure == ECONNREFUSED ? Reached::kRefused : Reached::kNothing;
}

Reached ReachOnce(const std::string& endpoint, Duration limit) {
  const Result<HostPort> where = ParseEndpoint(endpoint);
  if (!where.ok() || !where->port) return Reached::kNothing;
  return ReachOnce(where->host, *where->port, limit);
}

Status AwaitListener(const std::string& number, uint16_t port, Duration limit,
                     const CancelToken& cancel) {
  const Result<Fd> connection = ConnectUntil(number, port, limit, cancel);
  return connection.ok() ? Ok() : Status(connection.error());
}

Status AwaitAnswer(const std::string& number, uint16_t port, Duration limit,
                   const CancelToken& cancel) {
  const TimePoint end = RealClock().Monotonic() + limit;
  KEEL_TRY_ASSIGN(const Fd connection, ConnectUntil(number, port, limit, cancel));
  const std::string hail = std::string(kStoreHail) + "\n";
  (void)send(connection.number(), hail.data(), hail.size(), MSG_NOSIGNAL);
  if (AwaitReady(connection.number(), POLLIN, end, cancel)) return Ok();
  if (cancel.cancelled()) return Cancelled();
  return Error{Code::kTimeout, "something listens at " + number + ":" + std::to_string(port) +
                                   ", but did not greet as a store within " +
                                   DurationText(limit) + "; check host and port"};
}

}  // namespace keel
