// AwaitListener(): a search that nobody needs any more ends, long before its limit.
#include "store/reach.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/listen_socket.h"

namespace keel {
namespace {

constexpr Duration kNeverReached = std::chrono::hours(10);

uint16_t PortOfNobody() { return ListenSocket::Listen("127.0.0.1", 0)->port(); }

TEST(AwaitListener, IsCancelledWhileNobodyListens) {
  const CancelToken cancel;
  std::thread other([&] { cancel.Cancel(); });
  const Status status = AwaitListener("127.0.0.1", PortOfNobody(), kNeverReached, cancel);
  other.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kCancelled);
}

TEST(AwaitListener, FindsWhatListensThough) {
  const CancelToken cancel;
  const Result<ListenSocket> socket = ListenSocket::Listen("127.0.0.1", 0);
  ASSERT_TRUE(socket.ok());
  EXPECT_TRUE(AwaitListener("127.0.0.1", socket->port(), kNeverReached, cancel).ok());
}

}  // namespace
}  // namespace keel
