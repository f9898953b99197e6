// SocketsConnectedTo() finds connections by their peer, and looks at none while some are ended.
#include "store/socket_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/clock.h"

namespace keel {
namespace {

constexpr auto kNobody = "127.0.0.1";

TEST(SocketFinder, LooksAtNoSocketWhileConnectionsEnd) {
  std::optional<EndingSockets> ending(std::in_place);
  std::atomic<bool> has_ended = false;
  std::thread search([&] {
    const TimePoint begun = RealClock().Monotonic();
    EXPECT_THAT(SocketsConnectedTo(kNobody, 1), testing::IsEmpty());
    EXPECT_TRUE(has_ended || RealClock().Monotonic() - begun >= kEndingMax);
  });
  RealClock().SleepFor(std::chrono::milliseconds(50));
  has_ended = true;
  ending.reset();
  search.join();
}

TEST(SocketFinder, GoesOnWhereAnEndHangs) {
  const EndingSockets hangs;
  EXPECT_THAT(SocketsConnectedTo(kNobody, 1), testing::IsEmpty());
}

TEST(SocketFinder, SeveralGroupsEndAtOnce) {
  const EndingSockets one;
  const EndingSockets another;
}

}  // namespace
}  // namespace keel
