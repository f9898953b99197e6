// What FreePort promises.
#include "tests/harness/free_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <set>

#include "base/fd.h"

namespace keel {
namespace {

TEST(FreePort, CanBeListenedOnAndComesOnlyOnce) {
  std::set<uint16_t> seen;
  for (int round = 0; round < 50; ++round) {
    const uint16_t port = FreePort();
    EXPECT_TRUE(seen.insert(port).second) << port;
    const Fd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    ASSERT_EQ(bind(server.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(server.number(), 1), 0);
  }
}

}  // namespace
}  // namespace keel
