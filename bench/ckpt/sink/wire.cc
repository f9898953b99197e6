// By hand, since Beast would copy each body once more.
#include "bench/ckpt/sink/wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "store/s3/percent.h"

namespace keel {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n";
constexpr size_t kHeadMax = size_t{64} << 10;
constexpr uint64_t kBodyMax = uint64_t{5} << 30;   // S3's own limit

// Fills in what the path "/bucket/key?query" says.
void ReadPath(std::string_view target, SinkRequest* request) {
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string path = PercentDecoded(target.substr(0, mark));
  const size_t slash = path.find('/', 1);
  request->key = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (path == "/_sink") request->key = path.substr(1);
  for (size_t at = mark + 1; at < target.size();) {
    const size_t end = std::min(target.find('&', at), target.size());
    const std::string_view pair = target.substr(at, end - at);
    const size_t equals = std::min(pair.find('='), pair.size());
    request->query[PercentDecoded(pair.substr(0, equals))] =
        equals == pair.size() ? "" : PercentDecoded(pair.substr(equals + 1));
    at = end + 1;
  }
}

bool ReadHead(std::string_view head, SinkRequest* request) {
  const size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == std::string::npos || second <= first) return false;
  request->method = line.substr(0, first);
  ReadPath(line.substr(first + 1, second - first - 1), request);
  for (size_t at = line_end + 2; at < head.size();) {
    const size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view field = head.substr(at, end - at);
    at = end + 2;
    const size_t colon = field.find(':');
    if (colon == std::string::npos) continue;
    std::string name(field.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    const size_t value = std::min(field.find_first_not_of(' ', colon + 1), field.size());
    request->headers[name] = field.substr(value);
  }
  return true;
}

// 0 where it is none: what comes of that is an answer that its client does not want.
uint64_t NumberOf(std::string_view text, int base = 10) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

// "400;chunk-signature=...\r\n" and 1024 bytes and "\r\n", again and again; the last has 0 bytes.
std::string OutOfChunks(std::string_view body) {
  std::string whole;
  whole.reserve(body.size());
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\r\n", at);
    if (end == std::string::npos) break;
    const size_t bytes = NumberOf(body.substr(at, end - at), 16);
    if (bytes == 0 || bytes > body.size() - end) break;
    whole += body.substr(end + 2, bytes);
    at = end + 2 + bytes + 2;
  }
  return whole;
}

}  // namespace

std::optional<std::string> SinkReader::Head() {
  for (;;) {
    const size_t end = ahead_.find(kEnd);
    if (end != std::string::npos) {
      std::string head = ahead_.substr(0, end);
      ahead_.erase(0, end + kEnd.size());
      return head;
    }
    if (ahead_.size() > kHeadMax) return std::nullopt;
    char piece[4096];
    const ssize_t count = recv(connection_, piece, sizeof piece, 0);
    if (count <= 0) return std::nullopt;
    ahead_.append(piece, static_cast<size_t>(count));
  }
}

bool SinkReader::Body(uint64_t bytes, size_t piece_max,
                      const std::function<void(uint64_t)>& carry, std::string* body) {
  const size_t there = std::min<size_t>(bytes, ahead_.size());
  body->reserve(bytes);
  body->assign(ahead_, 0, there);
  ahead_.erase(0, there);
  body->resize(bytes);
  carry(there);
  for (size_t at = there; at < bytes;) {
    const ssize_t count =
        recv(connection_, body->data() + at, std::min<size_t>(piece_max, bytes - at), 0);
    if (count <= 0) return false;
    at += static_cast<size_t>(count);
    carry(static_cast<uint64_t>(count));
  }
  return true;
}

std::optional<SinkRequest> SinkReader::Next(size_t piece_max,
                                            const std::function<void(uint64_t)>& carry) {
  const std::optional<std::string> head = Head();
  SinkRequest request;
  if (!head || !ReadHead(*head, &request)) return std::nullopt;
  if (request.Header("expect") == "100-continue" &&
      !SendWhole(connection_, "HTTP/1.1 100 Continue\r\n\r\n")) {
    return std::nullopt;
  }
  const uint64_t bytes = NumberOf(request.Header("content-length"));
  if (bytes > kBodyMax || !Body(bytes, piece_max, carry, &request.body)) return std::nullopt;
  const bool is_chunked = request.Header("content-encoding").find("aws-chunked") !=
                          std::string::npos;
  if (is_chunked) request.body = OutOfChunks(request.body);
  return request;
}

bool SendWhole(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::optional<std::pair<uint64_t, uint64_t>> ParseSinkRange(const std::string& text,
                                                            uint64_t bytes) {
  const size_t dash = text.find('-');
  if (!text.starts_with("bytes=") || dash == text.npos) return std::nullopt;
  const std::string from = text.substr(6, dash - 6);
  const std::string to = text.substr(dash + 1);
  if (from.empty()) {
    const uint64_t count = std::min(NumberOf(to), bytes);
    return std::pair(bytes - count, count);
  }
  const uint64_t first = NumberOf(from);
  const uint64_t end = to.empty() ? bytes : std::min(NumberOf(to) + 1, bytes);
  return std::pair(first, end > first ? end - first : 0);
}

}  // namespace keel
