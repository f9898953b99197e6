// Finds the sockets of this process by the address that they are connected to.
// c10d hands out no file descriptors, and its receives have no time limit. To limit or end one, its
// socket must be found first.
// Promises   every connected TCP socket of this process whose peer is that address is found.
// Does not   tell apart two sockets to the same peer, or own any.
// Threads    any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace keel {

// `number` is a numeric address; IPv4 also matches its form mapped into IPv6.
std::vector<int> SocketsConnectedTo(const std::string& number, uint16_t port);

}  // namespace keel
