// What each request is answered with, from texts that are rendered when somebody asks.
#include "elastic/status/server.h"

#include <map>
#include <utility>

#include "base/random.h"
#include "elastic/status/api.h"
#include "elastic/status/http_server.h"
#include "elastic/status/metrics.h"
#include "elastic/status/page.h"
#include "elastic/status/request.h"
#include "store/host_port.h"

namespace keel {
namespace {

constexpr Duration kRenderPause = std::chrono::milliseconds(250);
constexpr size_t kNonceDigits = 16;

// A reply that anybody may see.
StatusReply Refusal(StatusAnswer answer) {
  switch (answer) {
    case StatusAnswer::kNotGet: return PlainReply(405, "only GET is served here");
    case StatusAnswer::kNoToken:
      return PlainReply(401, "a token is needed: ?token=... or Authorization: Bearer ...");
    case StatusAnswer::kOtherHost:
      return PlainReply(403, "ask for localhost or 127.0.0.1, or give keelrun a --status-token");
    default: return PlainReply(404, "there are /, /api and /metrics");
  }
}

}  // namespace

// Only the server's thread uses it.
class StatusServer::Service {
 public:
  Service(std::string token, JobStatus status, Clock& clock)
      : token_(std::move(token)), clock_(clock), status_(std::move(status)) {}

  StatusReply Answer(const StatusRequest& request);
  JobStatus& status() { return status_; }

 private:
  struct Made {
    TimePoint at;
    StatusReply reply;
  };

  StatusReply Make(StatusAnswer answer);

  const std::string token_;
  Clock& clock_;
  JobStatus status_;
  std::map<StatusAnswer, Made> made_;
};

StatusReply StatusServer::Service::Answer(const StatusRequest& request) {
  const StatusAnswer answer = JudgeRequest(request, token_);
  const bool is_view = answer == StatusAnswer::kPage || answer == StatusAnswer::kApi ||
                       answer == StatusAnswer::kMetrics;
  if (!is_view) return Refusal(answer);
  const TimePoint now = clock_.Monotonic();
  const auto made = made_.find(answer);
  if (made != made_.end() && now - made->second.at < kRenderPause) return made->second.reply;
  return made_.insert_or_assign(answer, Made{now, Make(answer)}).first->second.reply;
}

StatusReply StatusServer::Service::Make(StatusAnswer answer) {
  const int64_t now = clock_.WallNanos();
  const auto body = [](std::string text) {
    return std::make_shared<const std::string>(std::move(text));
  };
  if (answer == StatusAnswer::kApi) {
    return {200, "application/json", body(StatusApiText(status_, now)),
            "default-src 'none'"};
  }
  if (answer == StatusAnswer::kMetrics) {
    return {200, kMetricsType, body(StatusMetricsText(status_, now)),
            "default-src 'none'"};
  }
  Random random(EntropySeed());
  const std::string nonce = RandomId(random, kNonceDigits);
  return {200, "text/html; charset=utf-8", body(StatusPageText(status_, now, nonce)),
          StatusPagePolicy(nonce)};
}

Result<std::unique_ptr<StatusServer>> StatusServer::Open(const StatusAddress& where,
                                                         JobStatus status, Clock& clock) {
  auto service = std::make_unique<Service>(where.token, std::move(status), clock);
  KEEL_TRY_ASSIGN(auto http,
                  HttpServer::Open("the status page", where.address, where.port, clock,
                                   [service = service.get()](const StatusRequest& request) {
                                     return service->Answer(request);
                                   }));
  std::unique_ptr<StatusServer> server(new StatusServer(std::move(service), std::move(http)));
  server->where_ = AddressText(where.address, server->port());
  return server;
}

StatusServer::StatusServer(std::unique_ptr<Service> service, std::unique_ptr<HttpServer> http)
    : service_(std::move(service)), http_(std::move(http)) {}

StatusServer::~StatusServer() = default;

uint16_t StatusServer::port() const { return http_->port(); }

void StatusServer::Post(std::function<void(JobStatus& status)> change) {
  http_->Post([service = service_.get(), change = std::move(change)] {
    change(service->status());
  });
}

}  // namespace keel
