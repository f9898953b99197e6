// One timer, and one call at a time.
#include "elastic/notice/poller.h"

#include <algorithm>
#include <utility>

namespace keel {

NoticePoller::NoticePoller(boost::asio::io_context& loop, Clock& clock, HttpBase base,
                           NoticePlan plan, OnEvent on_event)
    : loop_(loop), clock_(clock), base_(std::move(base)), on_event_(std::move(on_event)),
      watch_(std::move(plan), clock.Monotonic(), clock.WallNanos()), timer_(loop) {
  Step();
}

void NoticePoller::Step() {
  watch_.OnTime(clock_.Monotonic());
  for (const NoticeEvent& event : watch_.TakeEvents()) on_event_(event);
  if (const auto request = watch_.Next(clock_.Monotonic())) {
    call_ = std::make_unique<HttpCall>(loop_, base_, *request, [this](const auto& reply) {
      watch_.OnReply(reply, clock_.Monotonic(), clock_.WallNanos());
      Step();
    });
  }
  const TimePoint wake = watch_.NextWake();
  if (wake == kNever) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::max(wake - clock_.Monotonic(), Duration(0)));
  timer_.async_wait([this](const boost::system::error_code& failure) {
    if (!failure) Step();
  });
}

}  // namespace keel
