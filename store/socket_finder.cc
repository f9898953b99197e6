// Looks through /proc/self/fd for sockets with a given peer.
#include "store/socket_finder.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>

namespace keel {
namespace {

struct Peer {
  std::string number;
  uint16_t port = 0;
};

// The peer of a socket; its number is empty if the descriptor is no connected TCP socket.
Peer PeerOf(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return {};
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
  } else {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return {text, ntohs(v6.sin6_port)};
}

// Searches hold the mutex, and so go one by one. Ends only count themselves under it.
struct Turns {
  std::mutex mutex;
  std::condition_variable ended;
  int ending = 0;   // guarded by mutex
};

// Never destroyed: groups end in threads that may outlive main().
Turns& AllTurns() {
  static Turns& turns = *new Turns;
  return turns;
}

}  // namespace

EndingSockets::EndingSockets() {
  const std::lock_guard lock(AllTurns().mutex);
  ++AllTurns().ending;
}

EndingSockets::~EndingSockets() {
  const std::lock_guard lock(AllTurns().mutex);
  --AllTurns().ending;
  AllTurns().ended.notify_all();
}

std::vector<int> SocketsConnectedTo(const std::string& number, uint16_t port) {
  Turns& turns = AllTurns();
  std::unique_lock lock(turns.mutex);
  (void)turns.ended.wait_for(lock, kEndingMax, [&] { return turns.ending == 0; });
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> open_files(opendir("/proc/self/fd"), closedir);
  if (!open_files) return found;
  while (const dirent* entry = readdir(open_files.get())) {
    int fd = -1;
    const char* name = entry->d_name;
    const char* end = name + std::strlen(name);
    if (std::from_chars(name, end, fd).ptr != end) continue;
    const Peer peer = PeerOf(fd);
    if (peer.port == port && peer.number == number) found.push_back(fd);
  }
  return found;
}

}  // namespace keel
