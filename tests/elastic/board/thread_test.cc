// BoardThread: it ends when it is told to, whatever it is doing, and tells what keeps it.
#include "elastic/board/thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

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

// The first reason may be one that passes, such as a module that is still being loaded.
TEST(BoardThread, EachNewReasonIsToldOnce) {
  const std::vector<std::string> reasons{"loading", "loading", "another job's", "another job's"};
  std::vector<std::string> told;
  std::promise<void> tried_all;
  size_t tried = 0;
  BoardThread::Work work;
  work.connect = [&](const CancelToken&) -> Result<std::unique_ptr<Store>> {
    if (tried == reasons.size()) tried_all.set_value();
    const size_t which = std::min(tried++, reasons.size() - 1);
    return Error{Code::kTimeout, reasons[which]};
  };
  work.poll = [](Store&, TimePoint) { return BoardThread::Turn{}; };
  work.on_trouble = [&](const Status& status) {
    told.push_back("begins: " + status.error().message);
  };
  work.on_reason = [&](const Error& reason) { told.push_back(reason.message); };
  work.pause_most = std::chrono::milliseconds(1);
  {
    BoardThread thread("board", RealClock(), std::move(work));
    tried_all.get_future().wait();
  }
  EXPECT_EQ(told, (std::vector<std::string>{"begins: loading", "another job's"}));
}

}  // namespace
}  // namespace keel
