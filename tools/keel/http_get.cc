// A socket that does not block, HTTP/1.0, and all that comes until the other side closes.
#include "tools/keel/http_get.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "store/resolve.h"

namespace keel {
namespace {

constexpr size_t kReplyMost = 16 << 20;
constexpr size_t kReadAtOnce = 65536;
constexpr size_t kSaidMost = 200;   // of an answer that is an error

Error Unreachable(const HttpPlace& place, const std::string& why) {
  return {Code::kPeerLost, "nobody answers at " + place.where() + ": " + why};
}

// An address of one number: no name service is asked.
using Address = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
Address AddressOf(const std::string& number, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(number.c_str(), port.c_str(), &hints, &found) != 0) found = nullptr;
  return {found, ::freeaddrinfo};
}

Result<Fd> ConnectTo(const HttpPlace& place, const std::string& number, size_t parts,
                     const SocketWait& wait) {
  const Address address = AddressOf(number, place.port);
  if (address == nullptr) return Unreachable(place, Shown(number) + " is no address");
  Fd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Unreachable(place, std::strerror(errno));
  if (::connect(socket.number(), address->ai_addr, address->ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return Unreachable(place, std::strerror(errno));
  KEEL_TRY(wait(socket.number(), true, parts));
  int failure = 0;
  socklen_t size = sizeof failure;
  if (::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0) failure = errno;
  if (failure != 0) return Unreachable(place, std::strerror(failure));
  return socket;
}

Result<Fd> Connect(HttpPlace* place, const SocketWait& wait) {
  std::vector<std::string>& numbers = place->numbers;
  Result<Fd> socket = Unreachable(*place, "it has no address");
  for (size_t i = 0; i < numbers.size(); ++i) {
    socket = ConnectTo(*place, numbers[i], numbers.size() - i, wait);
    if (socket.ok()) {
      const auto answering = numbers.begin() + static_cast<ptrdiff_t>(i);
      std::rotate(numbers.begin(), answering, answering + 1);
      break;
    }
    const Code code = socket.error().code;
    if (code != Code::kPeerLost && code != Code::kTimeout) break;
  }
  return socket;
}

Status SendAll(const HttpPlace& place, const Fd& socket, std::string_view text,
               const SocketWait& wait) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) text.remove_prefix(static_cast<size_t>(sent));
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return Unreachable(place, std::strerror(errno));
    KEEL_TRY(wait(socket.number(), true, 1));
  }
  return Ok();
}

Result<std::string> ReceiveAll(const HttpPlace& place, const Fd& socket, const SocketWait& wait) {
  std::string reply;
  for (;;) {
    const size_t before = reply.size();
    if (before > kReplyMost) {
      return Error{Code::kCorrupt, place.where() + " answers with more than " +
                                       BytesText(kReplyMost) + ": is it a status page?"};
    }
    reply.resize(before + kReadAtOnce);
    const ssize_t got = ::recv(socket.number(), reply.data() + before, kReadAtOnce, 0);
    reply.resize(before + static_cast<size_t>(got > 0 ? got : 0));
    if (got == 0) return reply;
    if (got > 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return Unreachable(place, std::strerror(errno));
    KEEL_TRY(wait(socket.number(), false, 1));
  }
}

}  // namespace

std::string HttpPlace::where() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + port;
}

Result<HttpPlace> ReadHttpPlace(std::string_view text) {
  const std::string_view shown = text.substr(0, std::min(text.find('?'), text.find("token=")));
  const auto wrong = [&] {   // without the token, which is a secret
    return MustBe(shown, "where keelrun says that its status page is, as 127.0.0.1:8090, 8090 or "
                         "http://127.0.0.1:8090/");
  };
  if (text.starts_with("http://")) text.remove_prefix(7);
  HttpPlace place;
  if (const size_t at = text.find("token="); at != text.npos) {
    place.token = std::string(text.substr(at + 6, text.find('&', at) - at - 6));
  }
  text = text.substr(0, text.find_first_of("/?"));
  const size_t colon = text.rfind(':');
  place.port = std::string(colon == text.npos ? text : text.substr(colon + 1));
  const auto port = ParseInteger(place.port);
  if (!port.ok() || *port < 1 || *port > 65535) return wrong();
  if (colon == text.npos || colon == 0) return place;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.find_first_of(" \r\n\t@[]") != host.npos) return wrong();
  place.host = std::string(host);
  return place;
}

Result<std::string> BodyOfReply(std::string_view reply) {
  const size_t end = reply.find("\r\n\r\n");
  if (!reply.starts_with("HTTP/1.") || end == reply.npos) {
    return Error{Code::kCorrupt, "the answer is no HTTP, or it was cut off: is it a status page?"};
  }
  const std::string_view status = reply.substr(0, reply.find("\r\n"));
  const std::string_view body = reply.substr(end + 4);
  const std::string_view code = status.size() < 12 ? "" : status.substr(9, 3);
  if (code == "200") return std::string(body);
  if (code == "401") {
    return Error{Code::kNotFound, "it asks for a token: give the job's in KEELRUN_STATUS_TOKEN, "
                                  "or in the address, as http://node0:8090/?token=..."};
  }
  return Error{Code::kNotFound, "it answers " + Printable(status) + ": " +
                                    Printable(Beginning(Trim(body), kSaidMost))};
}

Status FindNumbers(HttpPlace* place, Duration limit) {
  KEEL_TRY_ASSIGN(place->numbers, ResolveAll(place->host, limit));
  return Ok();
}

Result<std::string> HttpGet(HttpPlace* asked, const std::string& path, const SocketWait& wait) {
  KEEL_TRY_ASSIGN(const Fd socket, Connect(asked, wait));
  const HttpPlace& place = *asked;
  std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + place.where() + "\r\n";
  if (!place.token.empty()) request += "Authorization: Bearer " + place.token + "\r\n";
  KEEL_TRY(SendAll(place, socket, request + "\r\n", wait));
  KEEL_TRY_ASSIGN(const std::string reply, ReceiveAll(place, socket, wait));
  auto body = BodyOfReply(reply);
  if (!body.ok()) return body.error().Doing("asking " + place.where());
  return body;
}

}  // namespace keel
