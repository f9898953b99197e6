// One look-up with a limit: libc's has none that a caller can set.
#include "store/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <strings.h>
#include <sys/socket.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/within.h"
#include "store/own_address.h"

namespace keel {
namespace {

// IPv4 first: c10d's store and Gloo listen on both, but many clusters route only IPv4.
Result<std::vector<std::string>> LookUp(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failure != 0) {
    return Error{Code::kNotFound, "host '" + host + "' cannot be resolved (" +
                                      gai_strerror(failure) +
                                      "); check the name, or give a numeric address"};
  }
  std::vector<std::string> numbers;
  const auto take = [&](bool is_ipv4) {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      const std::string number = NumericAddress(one->ai_addr);
      const bool is_known = std::find(numbers.begin(), numbers.end(), number) != numbers.end();
      if ((one->ai_family == AF_INET) == is_ipv4 && !is_known) numbers.push_back(number);
    }
  };
  take(true);
  take(false);
  freeaddrinfo(found);
  return numbers;
}

// getnameinfo() will not do: in our programs it returns the number (store/numeric_names.h).
Result<std::string> LookUpName(const std::string& number) {
  in6_addr address{};
  const int family = number.find(':') == std::string::npos ? AF_INET : AF_INET6;
  inet_pton(family, number.c_str(), &address);
  const socklen_t bytes = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
  std::vector<char> memory(16384);
  hostent entry{};
  hostent* found = nullptr;
  int failure = 0;
  gethostbyaddr_r(&address, bytes, family, &entry, memory.data(), memory.size(), &found, &failure);
  if (found != nullptr && found->h_name != nullptr) return std::string(found->h_name);
  return Error{Code::kNotFound, "no name service has a name for " + number};
}

}  // namespace

Result<std::vector<std::string>> ResolveAll(const std::string& host, Duration limit) {
  if (host.empty()) return Error{Code::kInvalid, "the host name is empty"};
  // Every host has it. Some containers do not name it; others name it ::1 but have no IPv6.
  if (strcasecmp(host.c_str(), "localhost") == 0) return std::vector<std::string>{"127.0.0.1"};
  auto numbers = LookUp(host, AI_NUMERICHOST);
  if (numbers.ok()) return numbers;
  using Numbers = Result<std::vector<std::string>>;
  std::optional<Numbers> answer = Within<Numbers>(limit, [host] { return LookUp(host, 0); });
  if (answer) return *std::move(answer);
  return Error{Code::kTimeout, "the name service did not answer for host '" + host + "' within " +
                                   DurationText(limit) + "; check DNS, or give a numeric address"};
}

bool IsHostKnown(const std::string& host, Duration limit) {
  if (LookUp(host, AI_NUMERICHOST).ok()) return true;
  return Within<bool>(limit, [host] { return LookUp(host, 0).ok(); }).value_or(false);
}

Result<std::string> ResolveHost(const std::string& host, Duration limit) {
  KEEL_TRY_ASSIGN(const std::vector<std::string> numbers, ResolveAll(host, limit));
  return numbers.front();
}

Result<std::string> NameOfAddress(const std::string& number, Duration limit) {
  if (!LookUp(number, AI_NUMERICHOST).ok()) {
    return Error{Code::kInvalid, "'" + number + "' is not a numeric address"};
  }
  std::optional<Result<std::string>> answer =
      Within<Result<std::string>>(limit, [number] { return LookUpName(number); });
  if (answer) return *std::move(answer);
  return Error{Code::kTimeout, "the name service did not say within " + DurationText(limit) +
                                   " what name " + number + " has"};
}

}  // namespace keel
