// A connected datagram socket has an address of its own.
#include "store/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace keel {

std::string NumericAddress(const sockaddr* address) {
  const bool v6 = address->sa_family == AF_INET6;
  if (!v6 && address->sa_family != AF_INET) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const bytes =
      v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
         : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  return inet_ntop(address->sa_family, bytes, text.data(), text.size()) != nullptr ? text.data()
                                                                                   : "";
}

std::string OwnAddressTowards(const std::string& number) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(number.c_str(), "9", &hints, &found) != 0) return "";
  const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  const bool told = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                    getsockname(fd, address, &bytes) == 0;
  freeaddrinfo(found);
  if (fd >= 0) close(fd);
  return told ? NumericAddress(address) : "";
}

std::string OwnHostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    std::string address = NumericAddress(one->ifa_addr);
    if (!address.empty()) addresses.push_back(std::move(address));
  }
  freeifaddrs(all);
  return addresses;
}

bool IsLoopback(const std::string& address) {
  return address == "::1" || address.starts_with("127.");
}

}  // namespace keel
