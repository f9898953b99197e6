// RawClient: a connection to a port of this machine that says what a test wants, well or badly; and
// a request of HTTP with its reply.
// Promises   every wait ends; one that had to be given up fails the test.
// Threads    one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace keel {

class RawClient {
 public:
  // `port` of 127.0.0.1; a connection that is refused leaves connected() false.
  explicit RawClient(uint16_t port);

  bool connected() const { return socket_.valid(); }
  // False: the other side has closed.
  bool Send(std::string_view bytes) const;
  // All until the other side closes.
  std::string ReadToEnd() const;

 private:
  Fd socket_;
};

struct HttpText {
  int status = -1;      // -1: there was none
  std::string head;
  std::string body;
};
HttpText HttpAsk(uint16_t port, const std::string& request);
// `headers`: each with its line end.
HttpText HttpGet(uint16_t port, const std::string& target, const std::string& headers = "");

}  // namespace keel
