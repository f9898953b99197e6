// HttpServer: answers those who look at this launcher from outside, one request a connection.
// Promises   costs the job nothing: it has a thread of its own, which yields to all others. Clients
//            that are slow, silent, many or talk garbage cost only their own connection: each has
//            limits on its header, its time and its answer, and their number is limited. After the
//            destructor nobody listens.
// Does not   speak TLS, keep connections, take bodies, or know what is asked for.
// Threads    Post() from any; the rest from one. The answers are made on its own thread.
// Errors     of Open(): kInvalid: it cannot listen there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/status/request.h"

namespace keel {

inline constexpr size_t kHttpConnectionsMax = 64;

struct StatusReply {
  int status = 200;
  const char* type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
  std::string policy;   // Content-Security-Policy
};

// One line of text, for programs and people.
StatusReply PlainReply(int status, const std::string& text);

class HttpServer {
 public:
  using Answer = std::function<StatusReply(const StatusRequest& request)>;

  // `what` names it in errors: "the status page". `address` is numeric; port 0: a free one.
  static Result<std::unique_ptr<HttpServer>> Open(const std::string& what,
                                                  const std::string& address, uint16_t port,
                                                  Clock& clock, Answer answer);
  ~HttpServer();

  uint16_t port() const { return port_; }
  // The work is done soon, in order, on the thread that makes the answers.
  void Post(std::function<void()> work);

 private:
  class Service;
  explicit HttpServer(std::unique_ptr<Service> service);

  uint16_t port_ = 0;
  std::unique_ptr<Service> service_;
};

}  // namespace keel
