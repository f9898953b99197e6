// One line gives the round and the request; after that each byte asks for the time.
#include "elastic/doctor/port.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "elastic/process/quiet_thread.h"
#include "store/reach.h"

namespace keel {
namespace {

constexpr size_t kVisitorsMax = 1000;
constexpr size_t kFirstLineMax = 64;
constexpr int kKnocks = 8;

int MillisUntil(TimePoint deadline) {
  const Duration left = std::max(deadline - RealClock().Monotonic(), Duration(0));
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<int64_t>(millis, 1 << 30));
}

Error Lost(int cause) {
  if (cause == ECONNREFUSED) return {Code::kPeerLost, "nobody listens there"};
  if (cause == ETIMEDOUT) return {Code::kTimeout, "nothing answers"};
  return {Code::kPeerLost, std::strerror(cause)};
}

Result<Fd> ConnectBy(const addrinfo& address, TimePoint deadline) {
  int failure = 0;
  Fd fd(ConnectOnce(address, deadline, &failure));
  if (!fd.valid()) return Lost(failure);
  const int on = 1;
  setsockopt(fd.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

Result<Fd> ConnectTo(const std::string& number, uint16_t port, TimePoint deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* address = nullptr;
  if (getaddrinfo(number.c_str(), std::to_string(port).c_str(), &hints, &address) != 0) {
    return Error{Code::kInvalid, "'" + number + "' is not a numeric address"};
  }
  Result<Fd> fd = ConnectBy(*address, deadline);
  freeaddrinfo(address);
  if (fd.ok()) return fd;
  return Error{fd.error().code,
               "port " + std::to_string(port) + " at " + number + ": " + fd.error().message};
}

std::string FirstLine(const std::string& round, const char* wish) {
  return round + " " + wish + "\n";
}

Status SendAll(const Fd& to, std::string_view text, TimePoint deadline) {
  const std::span<const char> all(text);
  return Exchange(to, std::as_bytes(all), to, {}, deadline);
}

// The outcome of a non-blocking call: bytes, 0 for "not now", or an error.
Result<size_t> Moved(ssize_t count) {
  if (count > 0) return static_cast<size_t>(count);
  if (count == 0) return Error{Code::kPeerLost, "the other side closed the connection"};
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return Lost(errno);
}

}  // namespace

Result<std::unique_ptr<DoctorPort>> DoctorPort::Open(std::string round, Clock& clock,
                                                     const PortRange& ports,
                                                     ListenSocket::From from) {
  KEEL_TRY_ASSIGN(ListenSocket socket, ListenSocket::ListenWithin("", ports, from));
  KEEL_TRY_ASSIGN(PipeEnds stop, MakePipe());
  const uint16_t port = socket.port();
  Fd listener(socket.Release());
  fcntl(listener.number(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<DoctorPort>(
      new DoctorPort(std::move(round), clock, std::move(stop), std::move(listener), port));
}

DoctorPort::DoctorPort(std::string round, Clock& clock, PipeEnds stop, Fd listener, uint16_t port)
    : round_(std::move(round)),
      clock_(clock),
      stop_(std::move(stop)),
      listener_(std::move(listener)),
      port_(port) {
  thread_ = StartQuietThread("doctor-port", [this] { Run(); });
}

DoctorPort::~DoctorPort() {
  stop_.write.Close();
  thread_.join();
}

void DoctorPort::Run() {
  for (;;) {
    std::vector<pollfd> waited = {{stop_.read.number(), POLLIN, 0},
                                  {listener_.number(), POLLIN, 0}};
    for (const Visitor& one : visitors_) waited.push_back({one.fd.number(), POLLIN, 0});
    if (poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return;
    if (waited[0].revents != 0) return;
    // From the back, so that removing a visitor moves none that is still to be served.
    for (size_t i = visitors_.size(); i-- > 0;) {
      if (waited[i + 2].revents == 0 || Serve(visitors_[i])) continue;
      visitors_.erase(visitors_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (waited[1].revents != 0) LetIn();
  }
}

void DoctorPort::LetIn() {
  Fd fd(accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid() || visitors_.size() >= kVisitorsMax) return;
  const int on = 1;
  setsockopt(fd.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  visitors_.push_back({std::move(fd)});
}

bool DoctorPort::Serve(Visitor& visitor) {
  if (!visitor.is_known) return TakeFirstLine(visitor);
  char byte = 0;
  const Result<size_t> got = Moved(recv(visitor.fd.number(), &byte, 1, 0));
  if (!got.ok()) return false;
  if (*got == 0) return true;
  const int64_t now = clock_.WallNanos();
  return send(visitor.fd.number(), &now, sizeof now, MSG_NOSIGNAL) == sizeof now;
}

// Reads byte by byte, so that nothing after the line is taken.
bool DoctorPort::TakeFirstLine(Visitor& visitor) {
  char byte = 0;
  const Result<size_t> got = Moved(recv(visitor.fd.number(), &byte, 1, 0));
  if (!got.ok()) return false;
  if (*got == 0) return true;
  visitor.said += byte;
  if (byte != '\n') return visitor.said.size() < kFirstLineMax;
  visitor.is_known = visitor.said == FirstLine(round_, "time");
  if (visitor.said != FirstLine(round_, "ring")) return visitor.is_known;
  const std::lock_guard lock(mutex_);
  ring_ = std::move(visitor.fd);
  came_.notify_all();
  return false;
}

Result<Fd> DoctorPort::TakeRing(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  const Duration left = deadline - RealClock().Monotonic();
  if (!came_.wait_for(lock, left, [this] { return ring_.has_value(); })) {
    return Error{Code::kTimeout, "the host before this one in the ring did not connect"};
  }
  return *std::exchange(ring_, std::nullopt);
}

Result<Knocked> Knock(const std::string& number, uint16_t port, const std::string& round,
                      Clock& clock, TimePoint deadline) {
  KEEL_TRY_ASSIGN(const Fd fd, ConnectTo(number, port, deadline));
  KEEL_TRY(SendAll(fd, FirstLine(round, "time"), deadline));
  Knocked best;
  for (int i = 0; i < kKnocks; ++i) {
    const TimePoint began = clock.Monotonic();
    const int64_t wall = clock.WallNanos();
    int64_t theirs = 0;
    const std::byte question{};
    KEEL_TRY(Exchange(fd, {&question, 1}, fd, std::as_writable_bytes(std::span(&theirs, 1)),
                      deadline));
    const int64_t took = (clock.Monotonic() - began).count();
    if (i > 0 && took >= best.round_trip_ns) continue;
    best = {took, theirs - (wall + took / 2), took / 2 + 1};
  }
  return best;
}

Result<Fd> KnockForRing(const std::string& number, uint16_t port, const std::string& round,
                        TimePoint deadline) {
  KEEL_TRY_ASSIGN(Fd fd, ConnectTo(number, port, deadline));
  KEEL_TRY(SendAll(fd, FirstLine(round, "ring"), deadline));
  return fd;
}

Status Exchange(const Fd& to, std::span<const std::byte> out, const Fd& from,
                std::span<std::byte> in, TimePoint deadline) {
  while (!out.empty() || !in.empty()) {
    std::array<pollfd, 2> waited = {{{out.empty() ? -1 : to.number(), POLLOUT, 0},
                                     {in.empty() ? -1 : from.number(), POLLIN, 0}}};
    const int ready = poll(waited.data(), waited.size(), MillisUntil(deadline));
    if (ready < 0 && errno != EINTR) return Error{Code::kIo, std::strerror(errno)};
    if (ready == 0) return Error{Code::kTimeout, "nothing answers"};
    if (!out.empty() && waited[0].revents != 0) {
      KEEL_TRY_ASSIGN(const size_t sent,
                      Moved(send(to.number(), out.data(), out.size(), MSG_NOSIGNAL)));
      out = out.subspan(sent);
    }
    if (!in.empty() && waited[1].revents != 0) {
      KEEL_TRY_ASSIGN(const size_t got, Moved(recv(from.number(), in.data(), in.size(), 0)));
      in = in.subspan(got);
    }
  }
  return Ok();
}

}  // namespace keel
