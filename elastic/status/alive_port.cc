// One answer for all who ask, whatever they ask for; a timer of the loop shows that it moves.
#include "elastic/status/alive_port.h"

#include <string>

#include "base/text.h"

namespace keel {
namespace {

constexpr Duration kNotePeriod = std::chrono::seconds(1);

}  // namespace

StatusReply AliveReply(std::string_view method, Duration still) {
  if (method != "GET" && method != "HEAD") return PlainReply(405, "only GET is served here");
  if (still <= kAliveLimit) return PlainReply(200, "alive");
  return PlainReply(503, "the launcher has stood still for " + DurationText(still));
}

Result<std::unique_ptr<AlivePort>> AlivePort::Open(boost::asio::io_context& loop, uint16_t port,
                                                   Clock& clock) {
  std::unique_ptr<AlivePort> alive(new AlivePort(loop, clock));
  // An orchestrator asks at the address of the container, which is none of the loopback.
  KEEL_TRY_ASSIGN(alive->http_,
                  HttpServer::Open("the health endpoint", "", port, clock,
                                   [at = alive.get()](const StatusRequest& request) {
                                     const Duration still =
                                         at->clock_.Monotonic() - at->alive_.load();
                                     return AliveReply(request.method, still);
                                   }));
  alive->NoteAlive();
  return alive;
}

AlivePort::AlivePort(boost::asio::io_context& loop, Clock& clock)
    : clock_(clock), timer_(loop), alive_(clock.Monotonic()) {}

void AlivePort::NoteAlive() {
  alive_ = clock_.Monotonic();
  timer_.expires_after(kNotePeriod);
  timer_.async_wait([this](const boost::system::error_code& failure) {
    if (!failure) NoteAlive();
  });
}

}  // namespace keel
