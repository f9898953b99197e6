// ListenSocket: the socket of a store's server, open before the server is.
// Promises   from Listen() on the port is ours, and whoever connects waits for the server instead
//            of being refused; a taken port is reported as such; no other program can take a
//            chosen port.
// Threads    one at a time.
// Errors     kExists: another program listens there; kInvalid: no numeric address; kIo.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "store/port_range.h"

namespace keel {

class ListenSocket {
 public:
  // `bind`: a numeric address; empty: all of this host's. Port 0: any free one.
  static Result<ListenSocket> Listen(const std::string& bind, uint16_t port);
  // The first free one of these, or the last one.
  enum class From { kFirst, kLast };
  static Result<ListenSocket> ListenWithin(const std::string& bind, const PortRange& ports,
                                           From from = From::kFirst);
  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&& other) noexcept;
  ~ListenSocket();

  uint16_t port() const { return port_; }
  const std::string& bind() const { return bind_; }
  bool is_ipv6() const { return is_ipv6_; }
  // poll() tells whether somebody waits.
  int number() const { return fd_; }
  // The caller that takes the descriptor closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  ListenSocket(int fd, std::string bind, uint16_t port, bool is_ipv6)
      : fd_(fd), bind_(std::move(bind)), port_(port), is_ipv6_(is_ipv6) {}

  int fd_ = -1;
  std::string bind_;
  uint16_t port_ = 0;
  bool is_ipv6_ = false;
};

}  // namespace keel
