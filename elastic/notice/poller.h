// NoticePoller: asks what a NoticeWatch wants to ask, and passes on what that says.
// Promises   never holds up the loop. Only NoticeEvent::kLeave disturbs a job.
// Does not   judge (elastic/notice/watch.h).
// Threads    the loop's. It must not be destroyed from within `on_event`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>

#include "base/clock.h"
#include "elastic/notice/http_call.h"
#include "elastic/notice/watch.h"

namespace keel {

class NoticePoller {
 public:
  using OnEvent = std::function<void(const NoticeEvent&)>;
  // Begins at once; the loop calls `on_event`.
  NoticePoller(boost::asio::io_context& loop, Clock& clock, HttpBase base, NoticePlan plan,
               OnEvent on_event);

 private:
  void Step();

  boost::asio::io_context& loop_;
  Clock& clock_;
  const HttpBase base_;
  const OnEvent on_event_;
  NoticeWatch watch_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<HttpCall> call_;
};

}  // namespace keel
