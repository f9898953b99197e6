// One thread: accepts, reads to the empty line, answers or keeps the connection.
#include "tests/harness/fake_http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace keel {
namespace {

constexpr Duration kHangLimit = std::chrono::seconds(60);

void SendAll(const Fd& connection, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count =
        send(connection.number(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;   // who asked is gone
    sent += static_cast<size_t>(count);
  }
}

}  // namespace

FakeHttp::FakeHttp()
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), wake_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener_.number(), any, size), 0);
  EXPECT_EQ(listen(listener_.number(), 64), 0);
  EXPECT_EQ(getsockname(listener_.number(), any, &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

FakeHttp::~FakeHttp() { Close(); }

void FakeHttp::Close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
  listener_ = Fd();
  waiting_.clear();
}

void FakeHttp::Wake() const {
  const uint64_t one = 1;
  (void)!write(wake_.number(), &one, sizeof one);
}

void FakeHttp::Answer(const std::string& request, int status, const std::string& body,
                      const std::string& headers) {
  AnswerRaw(request, "HTTP/1.1 " + std::to_string(status) + " Said\r\n" + headers +
                         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

void FakeHttp::AnswerRaw(const std::string& request, const std::string& bytes) {
  Set(request, bytes, "");
}

void FakeHttp::Hang(const std::string& request, const std::string& begin) {
  Set(request, std::nullopt, begin);
}

void FakeHttp::Set(const std::string& request, std::optional<std::string> bytes,
                   const std::string& begin) {
  const std::lock_guard lock(mutex_);
  answers_[request] = {begin, std::move(bytes)};
  std::erase_if(waiting_, [&](const Waiting& one) {
    std::string ignored;
    const auto answer = BytesFor(one.request, &ignored);
    if (answer) SendAll(one.connection, *answer);
    return answer.has_value();
  });
}

std::optional<std::string> FakeHttp::BytesFor(const std::string& request,
                                              std::string* begin) const {
  std::optional<std::string> bytes = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
  size_t longest = 0;
  for (const auto& [beginning, answer] : answers_) {
    if (!request.starts_with(beginning) || beginning.size() < longest) continue;
    longest = beginning.size();
    *begin = answer.first;
    bytes = answer.second;
  }
  return bytes;
}

void FakeHttp::Run() {
  for (;;) {
    pollfd wanted[] = {{listener_.number(), POLLIN, 0}, {wake_.number(), POLLIN, 0}};
    if (poll(wanted, 2, -1) < 0) continue;
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
    }
    Fd connection(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.valid()) Serve(std::move(connection));
  }
}

void FakeHttp::Serve(Fd connection) {
  std::string request;
  while (request.find("\r\n\r\n") == std::string::npos) {
    pollfd wanted[] = {{connection.number(), POLLIN, 0}, {wake_.number(), POLLIN, 0}};
    if (poll(wanted, 2, -1) < 0) continue;
    if (wanted[1].revents != 0) return;
    std::array<char, 4096> piece;
    const ssize_t got = read(connection.number(), piece.data(), piece.size());
    if (got <= 0) return;
    request.append(piece.data(), static_cast<size_t>(got));
  }
  const std::lock_guard lock(mutex_);
  std::string begin;
  const auto bytes = BytesFor(request, &begin);
  requests_.push_back(request);
  asked_.notify_all();
  SendAll(connection, bytes.value_or(begin));
  if (!bytes) waiting_.push_back({std::move(connection), request});
}

bool FakeHttp::AwaitAsked(const std::string& request, int count) {
  std::unique_lock lock(mutex_);
  return asked_.wait_for(lock, kHangLimit, [&] {
    return std::count_if(requests_.begin(), requests_.end(), [&](const std::string& one) {
             return one.starts_with(request);
           }) >= count;
  });
}

std::vector<std::string> FakeHttp::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

}  // namespace keel
