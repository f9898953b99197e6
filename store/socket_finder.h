// Finds the sockets of this process by the address that they are connected to.
// c10d hands out no file descriptors, and its receives have no time limit. To limit or end one, its
// socket must be found first.
// Promises   every connected TCP socket of this process whose peer is that address is found.
// Does not   tell apart two sockets to the same peer, or own any.
// Threads    any. While an EndingSockets lives, a search waits for its end, for kEndingMax at
//            most: who looks at a descriptor holds its socket for that moment. Closed meanwhile, it
//            stays in the epoll set of who closed it, and Gloo's thread throws at the next event of
//            a connection that it has closed, where nobody catches.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace keel {

// `number` is a numeric address; IPv4 also matches its form mapped into IPv6.
std::vector<int> SocketsConnectedTo(const std::string& number, uint16_t port);

// An end of connections takes some tens of milliseconds, and may in theory hang.
inline constexpr std::chrono::seconds kEndingMax{2};

// Lives while connections are closed by a thread that waits for their events.
class EndingSockets {
 public:
  EndingSockets();
  ~EndingSockets();
  EndingSockets(const EndingSockets&) = delete;
  EndingSockets& operator=(const EndingSockets&) = delete;
};

}  // namespace keel
