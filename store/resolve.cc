// One forward look-up with a limit: libc's has none that a caller can set.
#include "store/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <strings.h>
#include <sys/socket.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace keel {
namespace {

std::string NumberOf(const addrinfo& found) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* address =
      found.ai_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(found.ai_addr)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(found.ai_addr)->sin6_addr;
  inet_ntop(found.ai_family, address, text, sizeof text);
  return text;
}

// IPv4 first: c10d's store and Gloo listen on both, but many clusters route only IPv4.
Result<std::string> LookUp(const std::string& host, int flags) {
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
  const addrinfo* best = found;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      best = one;
      break;
    }
  }
  std::string number = NumberOf(*best);
  freeaddrinfo(found);
  return number;
}

struct Pending {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Result<std::string>> answer;
};

}  // namespace

Result<std::string> ResolveHost(const std::string& host, Duration limit) {
  if (host.empty()) return Error{Code::kInvalid, "the host name is empty"};
  // Every host has it. Some containers do not name it, others name it ::1 but have no IPv6.
  if (strcasecmp(host.c_str(), "localhost") == 0) return std::string("127.0.0.1");
  if (Result<std::string> number = LookUp(host, AI_NUMERICHOST); number.ok()) return number;

  auto pending = std::make_shared<Pending>();
  std::thread([pending, host] {
    Result<std::string> answer = LookUp(host, 0);
    std::lock_guard lock(pending->mutex);
    pending->answer = std::move(answer);
    pending->done.notify_all();
  }).detach();
  std::unique_lock lock(pending->mutex);
  if (!pending->done.wait_for(lock, limit, [&] { return pending->answer.has_value(); })) {
    return Error{Code::kTimeout, "the name service did not answer for host '" + host + "' within " +
                                     DurationText(limit) +
                                     "; check DNS, or give a numeric address"};
  }
  return *pending->answer;
}

}  // namespace keel
