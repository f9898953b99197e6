// StatusServer: serves those who watch a job: GET / (a page), /api (JSON), /metrics (Prometheus).
// Promises   costs the job nothing: it has a thread of its own, which yields to all others;
//            messages that nobody waits for change the model; one text serves all who ask within a
//            quarter of a second. Clients that are slow, silent, many or talk garbage cost only
//            their own connection: each has limits on its header, its time and its answer, and
//            their number is limited. After the destructor nobody listens.
// Does not   speak TLS, keep connections, take bodies; judge requests (elastic/status/request.h).
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

inline constexpr size_t kStatusConnectionsMax = 64;

class StatusServer {
 public:
  // Port 0: a free one.
  static Result<std::unique_ptr<StatusServer>> Open(const StatusAddress& where, JobStatus status,
                                                    Clock& clock);
  ~StatusServer();

  // "127.0.0.1:8090"
  const std::string& where() const { return where_; }
  uint16_t port() const { return port_; }
  // The change is made soon, and in order.
  void Post(std::function<void(JobStatus& status)> change);

 private:
  class Service;
  explicit StatusServer(std::unique_ptr<Service> service);

  std::string where_;
  uint16_t port_ = 0;
  std::unique_ptr<Service> service_;
};

}  // namespace keel
