// Plain system calls: a library would not let a test misbehave.
#include "tests/harness/raw_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "base/text.h"

namespace keel {
namespace {

constexpr int kHangMillis = 60'000;

}  // namespace

RawClient::RawClient(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket_.number(), any, sizeof address) != 0) socket_ = Fd();
}

bool RawClient::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string RawClient::ReadToEnd() const {
  std::string all;
  std::array<char, 16384> piece;
  for (;;) {
    pollfd readable{socket_.number(), POLLIN, 0};
    if (poll(&readable, 1, kHangMillis) != 1) {
      ADD_FAILURE() << "nothing for a minute, after: " << Shown(all);
      return all;
    }
    const ssize_t got = recv(socket_.number(), piece.data(), piece.size(), 0);
    if (got <= 0) return all;
    all.append(piece.data(), static_cast<size_t>(got));
  }
}

HttpText HttpAsk(uint16_t port, const std::string& request) {
  const RawClient client(port);
  if (!client.connected()) return {};
  (void)client.Send(request);   // the answer may come, and the end, before all is sent
  const std::string all = client.ReadToEnd();
  HttpText reply;
  const size_t end = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.1 ") || end == std::string::npos) return reply;
  constexpr size_t kStatusAt = 9;
  reply.status = static_cast<int>(ParseInteger(all.substr(kStatusAt, 3)).value());
  reply.head = all.substr(0, end);
  reply.body = all.substr(end + 4);
  return reply;
}

HttpText HttpGet(uint16_t port, const std::string& target, const std::string& headers) {
  return HttpAsk(port, "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n");
}

}  // namespace keel
