// HttpGet: one question to a status page.
// Promises   whoever waits decides how long, and may give up at any time: the name service is asked
//            only by FindNumbers(). Of several addresses each has its part of the time. A reply
//            takes at most 16 MiB of memory.
// Does not   follow redirections, keep connections, or speak TLS.
// Threads    any. Errors: kInvalid: the address makes no sense; kPeerLost: nobody answers there;
//            kCorrupt: no HTTP, or too much of it; kTimeout, kCancelled and others: those of the
//            waiting, and of the name service; kNotFound: the answer is another one than 200.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

struct HttpPlace {
  std::string host = "127.0.0.1";
  std::string port;
  std::string token = {};   // of the address; empty: it has none
  std::vector<std::string> numbers = {};   // of the host; the one that answers comes first

  // "127.0.0.1:8090", as in the header Host.
  std::string where() const;
};

// "8090", "node0:8090", "[::1]:8090", "http://node0:8090/?token=...".
Result<HttpPlace> ReadHttpPlace(std::string_view text);

// The body of a whole reply.
Result<std::string> BodyOfReply(std::string_view reply);

// Asks the name service for the numbers of the host.
Status FindNumbers(HttpPlace* place, Duration limit);

// Returns once the socket can be read, or written to. kTimeout: not within the time that is left,
// divided by `parts`; any error but this one gives up.
using SocketWait = std::function<Status(int socket, bool to_write, size_t parts)>;

// `path`: "/api".
Result<std::string> HttpGet(HttpPlace* place, const std::string& path, const SocketWait& wait);

}  // namespace keel
