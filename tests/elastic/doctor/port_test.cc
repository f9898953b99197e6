// Doctors of several hosts in one process, over real connections.
#include "elastic/doctor/port.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "elastic/doctor/ring.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"
#include "tests/harness/raw_client.h"

namespace keel {
namespace {

const std::string kRound = "0123456789abcdef";

TimePoint HangLimit() { return RealClock().Monotonic() + std::chrono::seconds(60); }

std::unique_ptr<DoctorPort> OpenPort(Clock& clock = RealClock()) {
  auto port = DoctorPort::Open(kRound, clock);
  EXPECT_OK(port);
  return *std::move(port);
}

// Its wall clock is ahead.
class AheadClock : public Clock {
 public:
  TimePoint Monotonic() override { return RealClock().Monotonic(); }
  int64_t WallNanos() override { return RealClock().WallNanos() + 90'000'000'000; }
  void SleepUntil(TimePoint when) override { RealClock().SleepUntil(when); }
};

TEST(DoctorPort, WhoKnocksLearnsTheTimeThere) {
  AheadClock ahead;
  const auto port = OpenPort(ahead);
  const auto knocked = Knock("127.0.0.1", port->port(), kRound, RealClock(), HangLimit());
  ASSERT_OK(knocked);
  EXPECT_GT(knocked->round_trip_ns, 0);
  // Not how long it took: whatever that was, it is counted as doubt.
  const int64_t wrong = std::abs(knocked->clock_ahead_ns - 90'000'000'000);
  EXPECT_LE(wrong, knocked->clock_doubt_ns + 1'000'000'000);
}

TEST(DoctorPort, WhoDoesNotKnowTheRoundIsShownTheDoor) {
  const auto port = OpenPort();
  const auto other = Knock("127.0.0.1", port->port(), "another", RealClock(), HangLimit());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Code::kPeerLost);
  // A flood, too; and it goes on serving those who know it.
  RawClient flood(port->port());
  (void)flood.Send(std::string(1 << 20, 'x'));
  EXPECT_OK(Knock("127.0.0.1", port->port(), kRound, RealClock(), HangLimit()));
}

TEST(DoctorPort, WhereNobodyListensThatIsSaid) {
  const auto knocked = Knock("127.0.0.1", FreePort(), kRound, RealClock(), HangLimit());
  ASSERT_FALSE(knocked.ok());
  EXPECT_NE(knocked.error().message.find("nobody listens there"), std::string::npos)
      << knocked.error().message;
}

// A socket that takes connections and says nothing.
TEST(DoctorPort, WhoSaysNothingIsNotWaitedForBeyondTheLimit) {
  const auto silent = ListenSocket::Listen("127.0.0.1", 0);
  ASSERT_OK(silent);
  const TimePoint soon = RealClock().Monotonic() + std::chrono::milliseconds(50);
  const auto knocked = Knock("127.0.0.1", silent->port(), kRound, RealClock(), soon);
  ASSERT_FALSE(knocked.ok());
  EXPECT_EQ(knocked.error().code, Code::kTimeout);
}

std::vector<DoctorSum> AddUpAmong(size_t size, TimePoint deadline, size_t missing = SIZE_MAX) {
  std::vector<std::unique_ptr<DoctorPort>> ports;
  for (size_t i = 0; i < size; ++i) ports.push_back(OpenPort());
  std::vector<DoctorSum> sums(size);
  std::vector<std::thread> hosts;
  for (size_t i = 0; i < size; ++i) {
    if (i == missing) continue;
    hosts.emplace_back([&, i] {
      sums[i] = AddUpAround({i, size, "127.0.0.1", ports[(i + 1) % size]->port()}, kRound,
                            *ports[i], RealClock(), deadline);
    });
  }
  for (std::thread& host : hosts) host.join();
  return sums;
}

TEST(DoctorRing, TheSumIsRightEverywhere) {
  for (const size_t size : {2, 3, 5}) {
    for (const DoctorSum& sum : AddUpAmong(size, HangLimit())) {
      EXPECT_EQ(sum.trouble, "") << size;
      EXPECT_GT(sum.nanos, 0);
      EXPECT_EQ(sum.bytes, 1 << 20);
    }
  }
}

TEST(DoctorRing, OneThatDoesNotTakePartEndsItForAll) {
  const TimePoint soon = RealClock().Monotonic() + std::chrono::milliseconds(300);
  const std::vector<DoctorSum> sums = AddUpAmong(3, soon, 1);
  EXPECT_NE(sums[0].trouble, "");
  EXPECT_NE(sums[2].trouble, "");
}

}  // namespace
}  // namespace keel
