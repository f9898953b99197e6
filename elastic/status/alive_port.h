// AlivePort: says to whoever asks whether this launcher is alive, as probes of an orchestrator do
// at TORCHELASTIC_HEALTH_CHECK_PORT.
// Promises   any GET or HEAD is answered: 200 while the launcher's loop has moved within the last
//            minute, as torchrun's health checks judge it, and 503 from then on. It can be reached
//            from other machines, by IPv6 and IPv4, and tells them nothing else.
// Does not   judge workers or the job (elastic/status/server.h shows those).
// Threads    the loop's.
// Errors     of Open(): kInvalid: it cannot listen there.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/status/http_server.h"

namespace keel {

// How long the loop may stand still.
inline constexpr Duration kAliveLimit = std::chrono::seconds(60);

// `still`: for how long the loop has not moved.
StatusReply AliveReply(std::string_view method, Duration still);

class AlivePort {
 public:
  // `loop`: the one that is to move. Port 0: a free one.
  static Result<std::unique_ptr<AlivePort>> Open(boost::asio::io_context& loop, uint16_t port,
                                                 Clock& clock);

  uint16_t port() const { return http_->port(); }

 private:
  AlivePort(boost::asio::io_context& loop, Clock& clock);

  void NoteAlive();

  Clock& clock_;
  boost::asio::steady_timer timer_;
  std::atomic<TimePoint> alive_;
  std::unique_ptr<HttpServer> http_;   // its thread reads the time
};

}  // namespace keel
