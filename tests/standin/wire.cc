// Plain non-blocking sockets, looked at every millisecond.
#include "tests/standin/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

namespace keel::standin {
namespace {

constexpr int kLookMs = 1;

int Socket() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return made;
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Moves what it can of one piece. False: the other side is gone.
bool Advance(WirePiece& piece) {
  const size_t left = piece.count - piece.done;
  std::byte* const at = piece.bytes + piece.done;
  const ssize_t moved = piece.send ? send(piece.socket, at, left, MSG_NOSIGNAL)
                                   : recv(piece.socket, at, left, 0);
  if (moved > 0) piece.done += static_cast<size_t>(moved);
  if (moved == 0) return piece.send;
  return moved > 0 || errno == EAGAIN || errno == EINTR;
}

}  // namespace

int Listen(uint16_t* port) {
  const int listener = Socket();
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 128) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(listener);
    return -1;
  }
  *port = ntohs(address.sin_port);
  return listener;
}

Wire Connect(uint16_t port, int* socket, const Stop& stop) {
  const int made = Socket();
  const sockaddr_in address = Loopback(port);
  if (connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS) {
    close(made);
    return Wire::kLost;
  }
  for (pollfd one{made, POLLOUT, 0}; poll(&one, 1, kLookMs) <= 0;) {
    if (!stop()) continue;
    close(made);
    return Wire::kStopped;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    close(made);
    return Wire::kLost;
  }
  *socket = made;
  return Wire::kDone;
}

Wire Accept(int listener, int* socket, const Stop& stop) {
  while (!stop()) {
    pollfd one{listener, POLLIN, 0};
    if (poll(&one, 1, kLookMs) <= 0) continue;
    *socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (*socket >= 0) return Wire::kDone;
  }
  return Wire::kStopped;
}

Wire Send(int socket, const void* bytes, size_t count, const Stop& stop) {
  return Move({{socket, static_cast<std::byte*>(const_cast<void*>(bytes)), count, true, 0}}, stop);
}

Wire Receive(int socket, void* bytes, size_t count, const Stop& stop) {
  return Move({{socket, static_cast<std::byte*>(bytes), count, false, 0}}, stop);
}

Wire Move(std::vector<WirePiece> pieces, const Stop& stop) {
  while (!stop()) {
    // The first of each direction of each socket may move; the rest waits for its turn.
    std::map<std::pair<int, bool>, WirePiece*> next;
    for (WirePiece& piece : pieces) {
      if (piece.done < piece.count) next.try_emplace({piece.socket, piece.send}, &piece);
    }
    if (next.empty()) return Wire::kDone;
    std::vector<pollfd> polled;
    for (const auto& [key, piece] : next) {
      polled.push_back({key.first, static_cast<short>(key.second ? POLLOUT : POLLIN), 0});
    }
    if (poll(polled.data(), polled.size(), kLookMs) <= 0) continue;
    size_t index = 0;
    for (const auto& [key, piece] : next) {
      if (polled[index++].revents != 0 && !Advance(*piece)) return Wire::kLost;
    }
  }
  return Wire::kStopped;
}

}  // namespace keel::standin
