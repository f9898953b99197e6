// BoardThread: it ends when it is told to, whatever it is doing.
#include "elastic/board/thread.h"

#include <gtest/gtest.h>

#include <future>

namespace keel {
namespace {

// A launcher that gives its store up would otherwise wait for the whole limit of an attempt.
TEST(BoardThread, AnAttemptToConnectIsCancelledWhenItEnds) {
  std::promise<void> connecting;
  BoardThread::Work work;
  work.connect = [&](const CancelToken& ending) -> Result<std::unique_ptr<Store>> {
    connecting.set_value();
    while (!ending.cancelled()) RealClock().SleepFor(std::chrono::milliseconds(1));
    return Error{Code::kCancelled, "cancelled"};
  };
  work.poll = [](Store&, TimePoint) { return BoardThread::Turn{}; };
  work.on_trouble = [](const Status& status) { ADD_FAILURE() << status.error().message; };
  BoardThread thread("board", RealClock(), std::move(work));
  connecting.get_future().wait();
}

}  // namespace
}  // namespace keel
