// IPv6 that also accepts IPv4 if no address is given, and IPv4 alone if the host has no IPv6.
#include "store/listen_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace keel {
namespace {

struct Where {
  const std::string& bind;
  const uint16_t port;
};

struct Bound {
  int fd = -1;
  uint16_t port = 0;
  bool is_ipv6 = false;
};

// Linux can refuse listen() to both of two programs that bind and listen at the same moment, since
// it counts each as listening while it checks the other. Bound again, one finds the other there.
constexpr int kRaces = 100;

Error Refused(const Where& where, const char* doing, int cause) {
  const std::string address = (where.bind.empty() ? "*" : where.bind) + ":" +
                              std::to_string(where.port);
  const Error error{cause == EADDRINUSE ? Code::kExists : Code::kIo,
                    "hosting the store at " + address + ": " + doing + ": " + strerror(cause)};
  if (cause != EADDRINUSE) return error;
  return {error.code, error.message + "; another program listens there, choose another port"};
}

Result<Bound> BindAndListen(const Where& where, const addrinfo& address, int races = kRaces) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Refused(where, "socket", errno);
  const auto fail = [&](const char* doing) -> Result<Bound> {
    const int cause = errno;
    close(fd);
    return Refused(where, doing, cause);
  };
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, address.ai_addr, address.ai_addrlen) != 0) return fail("bind");
  if (listen(fd, SOMAXCONN) != 0) {
    Result<Bound> refused = fail("listen");
    if (refused.error().code != Code::kExists || races == 0) return refused;
    return BindAndListen(where, address, races - 1);
  }
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) return fail("getsockname");
  const uint16_t port = bound.ss_family == AF_INET
                            ? reinterpret_cast<const sockaddr_in&>(bound).sin_port
                            : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port;
  return Bound{fd, ntohs(port), bound.ss_family == AF_INET6};
}

Result<Bound> ListenAt(const Where& where) {
  const std::string port = std::to_string(where.port);
  Result<Bound> bound = Error{Code::kInvalid, "'" + where.bind + "' is not a numeric address"};
  const std::vector<std::string> numbers =
      where.bind.empty() ? std::vector<std::string>{"::", "0.0.0.0"}
                         : std::vector<std::string>{where.bind};
  for (const std::string& number : numbers) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    addrinfo* address = nullptr;
    if (getaddrinfo(number.c_str(), port.c_str(), &hints, &address) != 0) continue;
    bound = BindAndListen(where, *address);
    freeaddrinfo(address);
    if (bound.ok() || bound.error().code == Code::kExists) break;
  }
  return bound;
}

}  // namespace

Result<ListenSocket> ListenSocket::Listen(const std::string& bind, uint16_t port) {
  KEEL_TRY_ASSIGN(const Bound bound, ListenAt({bind, port}));
  return ListenSocket(bound.fd, bind, bound.port, bound.is_ipv6);
}

Result<ListenSocket> ListenSocket::ListenWithin(const std::string& bind, const PortRange& ports,
                                                From from) {
  if (ports.is_any()) return Listen(bind, 0);
  for (int i = 0; i <= ports.last - ports.first; ++i) {
    const int port = from == From::kFirst ? ports.first + i : ports.last - i;
    Result<ListenSocket> socket = Listen(bind, static_cast<uint16_t>(port));
    // To listen below 1024 takes a right, which is no more there for the next one.
    if (socket.ok() || socket.error().code != Code::kExists) return socket;
  }
  return Error{Code::kExists, "all ports of " + PortRangeText(ports) +
                                  " are taken by other programs; choose a wider range"};
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : fd_(other.Release()), bind_(std::move(other.bind_)), port_(other.port_),
      is_ipv6_(other.is_ipv6_) {}

ListenSocket& ListenSocket::operator=(ListenSocket&& other) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = other.Release();
  bind_ = std::move(other.bind_);
  port_ = other.port_;
  is_ipv6_ = other.is_ipv6_;
  return *this;
}

ListenSocket::~ListenSocket() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace keel
