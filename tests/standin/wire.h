// Sockets between the stand-in's members: bytes go and come until `stop` says otherwise.
// Threads    each socket by one thread at a time; `stop` is asked about every millisecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace keel::standin {

enum class Wire { kDone, kStopped, kLost };
using Stop = std::function<bool()>;

// A listener on the loopback, and its port.
int Listen(uint16_t* port);
Wire Connect(uint16_t port, int* socket, const Stop& stop);
Wire Accept(int listener, int* socket, const Stop& stop);
Wire Send(int socket, const void* bytes, size_t count, const Stop& stop);
Wire Receive(int socket, void* bytes, size_t count, const Stop& stop);

// What goes to one member or comes from it, in order with other pieces of the same socket.
struct WirePiece {
  int socket = -1;
  std::byte* bytes = nullptr;
  size_t count = 0;
  bool send = false;
  size_t done = 0;
};
// All of them side by side.
Wire Move(std::vector<WirePiece> pieces, const Stop& stop);

}  // namespace keel::standin
