// What a probe is told, and over a real connection.
#include "elastic/status/alive_port.h"

#include <boost/asio/ip/tcp.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/expect_ok.h"
#include "tests/harness/raw_client.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AlivePort, ALauncherThatHasStoodStillForAMinuteIsNotAlive) {
  EXPECT_EQ(AliveReply("GET", 0s).status, 200);
  EXPECT_EQ(AliveReply("GET", 60s).status, 200);
  EXPECT_EQ(AliveReply("GET", 60s + 1ns).status, 503);
  EXPECT_THAT(*AliveReply("GET", 90s).body, HasSubstr("stood still for 1 min 30 s"));
  EXPECT_EQ(AliveReply("HEAD", 0s).status, 200);
  EXPECT_EQ(AliveReply("POST", 0s).status, 405);
}

TEST(AlivePort, AnswersWhateverPathAndHostAProbeAsksFor) {
  boost::asio::io_context loop;
  const auto alive = AlivePort::Open(loop, 0, RealClock());
  ASSERT_OK(alive);
  for (const char* target : {"/", "/healthz", "/api"}) {
    const HttpText reply = HttpGet((*alive)->port(), target, "Host: 10.0.0.7:8080\r\n");
    EXPECT_EQ(reply.status, 200) << target;
    EXPECT_EQ(reply.body, "alive\n") << target;
  }
}

TEST(AlivePort, AnswersHeadWithoutABody) {
  boost::asio::io_context loop;
  const auto alive = AlivePort::Open(loop, 0, RealClock());
  ASSERT_OK(alive);
  const HttpText reply = HttpAsk((*alive)->port(), "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.head, HasSubstr("Content-Length: 6"));
  EXPECT_EQ(reply.body, "");
}

// A pod may have no other address.
TEST(AlivePort, ListensAtAddressesOfIpv6WhereTheMachineHasThem) {
  boost::asio::io_context loop;
  boost::asio::ip::tcp::acceptor own(loop);
  boost::system::error_code failure;
  const boost::asio::ip::tcp::endpoint any(boost::asio::ip::address_v6::loopback(), 0);
  own.open(any.protocol(), failure);
  if (!failure) own.bind(any, failure);
  const bool has_ipv6 = !failure;
  const auto alive = AlivePort::Open(loop, 0, RealClock());
  ASSERT_OK(alive);
  boost::asio::ip::tcp::socket probe(loop);
  probe.connect({boost::asio::ip::address_v6::loopback(), (*alive)->port()}, failure);
  EXPECT_EQ(!failure, has_ipv6) << failure.message();
}

TEST(AlivePort, APortThatIsTakenIsAnErrorThatNamesIt) {
  boost::asio::io_context loop;
  const auto first = AlivePort::Open(loop, 0, RealClock());
  ASSERT_OK(first);
  const auto second = AlivePort::Open(loop, (*first)->port(), RealClock());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr("the health endpoint cannot be at "),
                    HasSubstr(":" + std::to_string((*first)->port()) + ": ")));
}

}  // namespace
}  // namespace keel
