// Ports below the kernel's own range, each reserved by a socket name that lives as long as we do.
#include "tests/harness/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/fd.h"

namespace keel {
namespace {

// Linux takes outgoing connections' ports from 32768 upwards; the documentation's commands, which
// tests run as they stand, name some from 29600 upwards.
constexpr int kFirst = 20000;
constexpr int kCount = 9600;

// Binds an abstract name: only one process at a time can, and the kernel frees it when that one
// ends.
bool Reserve(int port) {
  Fd lock(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  KEEL_CHECK(lock.valid(), "socket: " << std::strerror(errno));
  const std::string name = "keel-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());   // a leading NUL: no file
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(lock.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return false;
  lock.Release();   // open until the process ends, and with it the reservation
  return true;
}

bool NobodyListens(int port) {
  const Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  KEEL_CHECK(probe.valid(), "socket: " << std::strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return bind(probe.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

uint16_t FreePort() {
  // Neighbouring pids start far apart, so that tests that run together seldom meet.
  static std::atomic<int> next{static_cast<int>(getpid() * 97L % kCount)};
  for (int attempt = 0; attempt < kCount; ++attempt) {
    const int port = kFirst + next++ % kCount;
    if (Reserve(port) && NobodyListens(port)) return static_cast<uint16_t>(port);
  }
  KEEL_CHECK(false, "no port is free from " << kFirst << " to " << kFirst + kCount - 1);
  return 0;
}

}  // namespace keel
