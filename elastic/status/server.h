// StatusServer: serves those who watch a job: GET / (a page), /api (JSON), /metrics (Prometheus).
// Promises   messages that nobody waits for change the model; one text serves all who ask within a
//            quarter of a second. After the destructor nobody listens.
// Does not   know connections and their limits (elastic/status/http_server.h); judge requests
//            (elastic/status/request.h).
// Threads    Post() from any; the rest from one.
// Errors     of Open(): kInvalid: it cannot listen there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/status/address.h"
#include "elastic/status/job_status.h"

namespace keel {

class HttpServer;

class StatusServer {
 public:
  // Port 0: a free one.
  static Result<std::unique_ptr<StatusServer>> Open(const StatusAddress& where, JobStatus status,
                                                    Clock& clock);
  ~StatusServer();

  // "127.0.0.1:8090"
  const std::string& where() const { return where_; }
  uint16_t port() const;
  // The change is made soon, and in order.
  void Post(std::function<void(JobStatus& status)> change);

 private:
  class Service;
  StatusServer(std::unique_ptr<Service> service, std::unique_ptr<HttpServer> http);

  std::string where_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> http_;   // its thread uses the service
};

}  // namespace keel
